"""Prepares a conversation with the model: about the answer, or about the next step of the plan."""

from __future__ import annotations

from agent.answering.beginning import begin_answer
from agent.ports import Deps, Runtime
from agent.prompts.research_prompts import build_executor_prompt, read_current_step
from agent.state import AgentState, clear_messages, is_answering
from agent.text.escaping import format_code_span


async def setup_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Begin a fresh conversation: about the current step, or, where none is due, about the answer.

    Reads plan, current_step, loop_decision, findings, cleaned_query, background, mode, nonce, retrieved, expanded,
    retrieval_metadata, shown, is_follow_up, conversation_history, flagged. Writes messages, executor_call_count, nonce;
    for the answer also shown and flagged.
    """
    if is_answering(state):
        return await begin_answer(state, runtime.context)
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
