"""Breaks a question that one retrieval cannot answer into steps."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent.errors import ModelError
from agent.guard.approval import list_unapproved_tools
from agent.guard.leak_check import check_leaks
from agent.limits import MAX_PLAN, count_plan_calls
from agent.ports import Deps, Runtime
from agent.prompts.output_schemas import PlanOutput, clean_steps
from agent.prompts.research_prompts import build_planner_prompt
from agent.state import AgentState

log = logging.getLogger(__name__)


async def planner(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Plan what is still to be found out; one step of searching where no model gives a plan.

    Reads proposal, cleaned_query, findings, iteration_count, approved. Writes plan, dependent, current_step,
    plan_applies, proposal, loop_decision, iteration_count, pause_reason.
    """
    deps = runtime.context
    deps.emit("step_start", node="planner", stage="Planning the research")
    form = _read_proposal(state) or await _make_plan(state, deps)
    known = frozenset(name.partition(": ")[2].lower() for name in state.get("findings", {}))
    steps = clean_steps(form.steps, known=known, most=MAX_PLAN) if form is not None else []
    waiting = _find_dependent(form, steps) if form is not None else []
    steps = [deps.redact(step) for step in steps] or [f"Search for code about: {state.get('cleaned_query', '')[:200]}"]
    return {
        "plan": steps,
        "current_step": 0,
        "plan_applies": True,
        "dependent": waiting,
        "proposal": None,
        "loop_decision": "CONTINUE",
        "iteration_count": state.get("iteration_count", 0) + 1,
        "pause_reason": _find_pause_reason(state, deps, steps, form.tools if form is not None else []),
    }


def _find_dependent(form: PlanOutput, steps: Sequence[str]) -> list[int]:
    """Return which of the steps that are left need what the ones before them find."""
    numbered = dict(enumerate(form.steps, 1))
    meant = [numbered[number] for number in form.dependent if number in numbered]
    waiting = set(clean_steps(meant, known=frozenset(), most=MAX_PLAN))
    return [at for at, step in enumerate(steps) if step in waiting]


def _read_proposal(state: AgentState) -> PlanOutput | None:
    """Return the plan that the model which answers has called for."""
    proposal = state.get("proposal")
    return PlanOutput.model_validate(proposal) if proposal is not None else None


async def _make_plan(state: AgentState, deps: Deps) -> PlanOutput | None:
    if deps.models.main is None:
        return None
    messages = build_planner_prompt(state, deps)
    try:
        form = await deps.models.main.generate_structured(messages, PlanOutput, task="planner")
        check_leaks(form.steps, messages, deps.masked)
    except ModelError as error:
        log.warning("no plan was made: %s", error)
        return None
    return form


def _find_pause_reason(state: AgentState, deps: Deps, steps: list[str], tools: list[str]) -> str:
    """Say why a person has to be asked before the plan is carried out; once for a turn is enough."""
    if unapproved := list_unapproved_tools(tools, state, deps):
        return unapproved
    return "plan" if count_plan_calls(steps) > deps.approval_calls and "plan" not in state.get("approved", []) else ""
