"""Checks whether the goal is reached, and tells the model where it is not."""

from __future__ import annotations

from agent import chat
from agent.goals.goal import GoalDeps, GoalResult, add_commands
from agent.goals.goal_prompts import format_check
from agent.goals.goal_state import GoalState, hash_changes
from agent.goals.plan import BUDGET
from agent.ports import Runtime

MOST_IDLE = 2  # replies in a row that call nothing


async def evaluate(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:
    """Make the check, unless nothing has changed since the last one, and end the iteration.

    Reads changes, checked, idle, iteration, max_iterations, ended_by and what the last check has found. Writes
    goal_achieved, goal_reason, goal_details, checked, iteration, ended_by, commands and messages.
    """
    deps = runtime.context
    deps.emit("step_start", node="evaluate", stage="Checking whether the goal is reached")
    digest = hash_changes(state.get("changes", []))
    is_known = state.get("checked") == digest
    result = _read_last(state) if is_known else await deps.goal.check(state, deps.workspace)
    iteration = state.get("iteration", 0) + 1
    reason = deps.redact(result.reason)
    label = deps.goal.reached if result.achieved else f"not {deps.goal.reached}"
    deps.emit("goal_check", iteration=iteration, achieved=result.achieved, label=label.capitalize(), reason=reason)
    ended_by = "" if result.achieved else state.get("ended_by", "") or _find_limit(state, iteration, deps)
    deps.emit("iteration_complete", iteration=iteration, decision=_name_decision(result, ended_by), reason=reason)
    return {
        "goal_achieved": result.achieved,
        "goal_reason": reason,
        "goal_details": dict(result.details),
        "checked": digest,
        "iteration": iteration,
        "ended_by": ended_by,
        "commands": add_commands(state, deps),
        "messages": [] if result.achieved or ended_by else [chat.HumanMessage(format_check(state, result, deps))],
    }


def _read_last(state: GoalState) -> GoalResult:
    return GoalResult(
        achieved=state.get("goal_achieved", False),
        reason=state.get("goal_reason", ""),
        details=state.get("goal_details", {}),
    )


def _find_limit(state: GoalState, iteration: int, deps: GoalDeps) -> str:
    if state.get("idle", 0) >= MOST_IDLE:
        return "the model called nothing and changed nothing, twice in a row"
    if iteration >= state.get("max_iterations", 1):
        return f"its {iteration} iteration{'s are' if iteration != 1 else ' is'} used up"
    return BUDGET if deps.budget.seconds_left <= 0 else ""


def _name_decision(result: GoalResult, ended_by: str) -> str:
    if result.achieved:
        return "achieved"
    return "give up" if ended_by else "go on"
