"""Waits after an iteration for a person who wants to decide about each; nothing else happens in this node."""

from __future__ import annotations

from agent.goals.goal import GoalDeps
from agent.goals.goal_state import GoalState
from agent.guard.approval import is_approval
from agent.ports import Runtime

_MOST_LISTED = 20


async def human_check(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:  # noqa: ARG001 - a node takes both
    """Pause, and continue or end as the person says.

    Reads iteration, max_iterations, goal_reason and changes. Writes is_aborted and ended_by.
    """
    from langgraph.types import interrupt  # takes a second, and without a model nothing comes here

    # Once resumed this node runs again from its first line, so what is asked comes from the state alone.
    reply = interrupt(_make_request(state))
    return {} if is_approval(reply) else {"is_aborted": True, "ended_by": "it was ended by a person"}


def _make_request(state: GoalState) -> dict[str, object]:
    changed = [one["path"].decode(errors="replace") for one in state.get("changes", [])]
    return {
        "kind": "goal",
        "iteration": state.get("iteration", 0),
        "max_iterations": state.get("max_iterations", 0),
        "reason": state.get("goal_reason", ""),
        "changed": changed[:_MOST_LISTED],
    }
