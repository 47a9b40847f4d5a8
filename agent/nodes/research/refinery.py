"""Decides after each step whether to continue, and with which plan."""

from __future__ import annotations

import logging

from agent.errors import BudgetExceeded, ModelError
from agent.limits import MAX_ITERATIONS
from agent.ports import Deps, Runtime
from agent.prompts.output_schemas import LONGEST_REASON, RefineryOutput
from agent.prompts.research_prompts import build_refinery_prompt
from agent.prompts.step_messages import list_taken_steps
from agent.state import AgentState, LoopDecision

log = logging.getLogger(__name__)


async def refinery(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Continue or finish; the model is asked only where the plan does not settle it.

    Reads mode, cleaned_query, findings, plan, dependent, current_step, iteration_count, is_follow_up,
    conversation_history, codebase_tree. Writes loop_decision, plan_applies,
    iteration_count.
    """
    deps = runtime.context
    decision, applies, reason = await _decide_loop(state, deps)
    iteration = state.get("iteration_count", 0)
    deps.emit("iteration_complete", iteration=iteration, decision=decision, reason=deps.redact(reason)[:LONGEST_REASON])
    steps_on = decision == "CONTINUE" and applies
    return {
        "loop_decision": decision,
        "plan_applies": applies,
        "iteration_count": iteration + 1 if steps_on else iteration,
    }


async def _decide_loop(state: AgentState, deps: Deps) -> tuple[LoopDecision, bool, str]:
    remain = state.get("current_step", 0) < len(state.get("plan", []))
    if state.get("iteration_count", 0) >= MAX_ITERATIONS or deps.budget.is_low:
        return "FINISH", False, f"{MAX_ITERATIONS} rounds are the most, and what is left of the budget is the answer's"
    newest = list(state.get("findings", {}).values())[-len(list_taken_steps(state)) or None :]
    if remain and newest and all(finding["found"] for finding in newest):
        return "CONTINUE", True, "the last steps found what they sought, and steps remain"
    model = deps.models.small or deps.models.main
    if model is None or (state.get("mode") == "tools" and not remain):
        # A model that has tools finds what is still missing itself.
        return ("CONTINUE" if remain else "FINISH"), remain, "nobody needs to judge it"
    try:
        form = await model.generate_structured(build_refinery_prompt(state, deps), RefineryOutput, task="refinery")
    except BudgetExceeded as error:
        return "FINISH", False, str(error)
    except ModelError as error:
        log.warning("the findings were not judged: %s", error)
        return ("CONTINUE" if remain else "FINISH"), remain, error.reason
    return form.decision, remain and form.plan_still_applies, form.reason
