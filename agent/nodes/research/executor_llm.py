"""Asks the model what to do next: call tools, or write the answer; within a step of a plan, call tools or sum up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.answering.replies import limit_reply
from agent.answering.rounds import answer_with_tools
from agent.errors import ModelError
from agent.limits import MAX_EXECUTOR_STEPS
from agent.ports import ChatModel, Deps, Runtime
from agent.prompts.research_prompts import insert_results, read_current_step, read_evidence_key
from agent.state import AgentState, is_answering

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_FALLBACK = "without-a-model"  # the id of the search that takes the place of a model that failed

log = logging.getLogger(__name__)


async def executor_llm(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Let the model act once; in the last round it has no tools and must answer, or sum up.

    Reads messages, executor_call_count, plan, current_step, loop_decision, approved, mode, nonce, shown, retrieved,
    findings, clarified, router_output. Writes messages, executor_call_count; where it answers also router_output,
    pause_reason, proposal, intent, mode, error, final_answer, answer_model, citations, main_symbol, main_kind. A model
    that fails within a step is replaced by one search for the step's text, and the step ends after it.
    """
    from langchain_core.messages import AIMessage  # takes long, and without a model nothing comes here

    deps = runtime.context
    if is_answering(state):
        return await answer_with_tools(state, deps)
    count = state.get("executor_call_count", 0)
    reply = await _ask_model(state, deps, is_last=count + 1 >= MAX_EXECUTOR_STEPS)
    if reply is None:
        # Once a tool has answered there is something to aggregate; before that, one search is better than nothing.
        is_fresh = not any(read_evidence_key(message) for message in state.get("messages", []))
        search = {"name": "search_codebase", "args": {"query": read_current_step(state)}, "id": _FALLBACK}
        calls = [{**search, "type": "tool_call"}] if is_fresh else []
        return {
            "messages": [AIMessage("", tool_calls=calls)],
            "executor_call_count": MAX_EXECUTOR_STEPS - 1 if is_fresh else MAX_EXECUTOR_STEPS,
        }
    return {"messages": [reply], "executor_call_count": count + 1}


async def _ask_model(state: AgentState, deps: Deps, *, is_last: bool) -> AIMessage | None:
    from langchain_core.messages import AIMessage  # as above

    model: ChatModel | None = deps.models.main
    messages = state.get("messages", [])
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    if model is None or any(call["id"] == _FALLBACK for call in calls):  # without one, or it has failed in this step
        return None
    texts = await deps.evidence.texts(filter(None, map(read_evidence_key, messages)))
    tools = [] if is_last else deps.tools.menu(deps, approved=state.get("approved", []))
    filled = insert_results(messages, texts, deps, nonce=state.get("nonce", ""))
    try:
        return limit_reply(await model.reply_with_tools(filled, tools, task="executor_llm"))
    except ModelError as error:
        log.warning("a step goes on without the model: %s", error)
        return None
