"""Clears the table for the next step of the plan."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.answers.markdown import code_span
from agent.ports import Deps
from agent.research.prompts import executor_messages
from agent.state import AgentState, no_messages

NOTHING_LEFT = "No step is left: summarise what was found."


async def setup_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Begin a fresh conversation about the current step.

    Reads plan, current_step, findings, cleaned_query. Writes messages, executor_call_count.
    """
    step = current_step(state)
    number = state.get("current_step", 0) + 1
    runtime.context.emit(
        "step_start",
        node="setup_executor",
        stage=f"Step {number} of {len(state.get('plan', []))}: {code_span(runtime.context.redact(step))}",
    )
    return {
        "messages": [no_messages(), *executor_messages(step, state, runtime.context)],
        "executor_call_count": 0,
    }


def current_step(state: AgentState) -> str:
    """Return the step of the plan that is on, or a sentence where there is none."""
    plan, at = state.get("plan", []), state.get("current_step", 0)
    return plan[at] if 0 <= at < len(plan) else NOTHING_LEFT
