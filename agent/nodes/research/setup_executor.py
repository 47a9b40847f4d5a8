"""Prepares the conversation with the model for the next step of the plan."""

from __future__ import annotations

from agent.ports import Deps, Runtime
from agent.prompts.research_prompts import build_executor_prompt, read_current_step
from agent.state import AgentState, clear_messages
from agent.text.escaping import format_code_span


async def setup_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Begin a fresh conversation about the current step.

    Reads plan, current_step, findings, cleaned_query. Writes messages, executor_call_count.
    """
    step = read_current_step(state)
    number = state.get("current_step", 0) + 1
    runtime.context.emit(
        "step_start",
        node="setup_executor",
        stage=f"Step {number} of {len(state.get('plan', []))}: {format_code_span(runtime.context.redact(step))}",
    )
    return {
        "messages": [clear_messages(), *build_executor_prompt(step, state, runtime.context)],
        "executor_call_count": 0,
    }
