"""Prepares a conversation with the model: about the answer, or about the next step of the plan."""

from __future__ import annotations

from agent.answering.beginning import begin_answer
from agent.ports import Deps, Runtime
from agent.prompts.research_prompts import build_executor_prompt, read_step
from agent.prompts.step_messages import list_due_steps, mark_step
from agent.state import AgentState, clear_messages, is_answering
from agent.text.escaping import format_code_span


async def setup_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Begin a fresh conversation about each step that is due, or, where none is, about the answer.

    Reads plan, dependent, current_step, loop_decision, findings, cleaned_query, background, mode, nonce, retrieved,
    expanded, retrieval_metadata, shown, is_follow_up, conversation_history, flagged, codebase_tree. Writes messages,
    executor_call_count; for the answer also nonce, codebase_tree, shown, told and flagged.
    """
    if is_answering(state):
        return await begin_answer(state, runtime.context)
    deps, steps, all_steps = runtime.context, list_due_steps(state), len(state.get("plan", []))
    for step in steps:
        shown = format_code_span(deps.redact(read_step(state, step)))
        deps.emit("step_start", node="setup_executor", stage=f"Step {step + 1} of {all_steps}: {shown}")
    messages = [
        mark_step(message, step)
        for step in steps
        for message in build_executor_prompt(read_step(state, step), state, deps)
    ]
    return {"messages": [clear_messages(), *messages], "executor_call_count": 0}
