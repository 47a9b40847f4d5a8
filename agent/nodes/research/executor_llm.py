"""Asks the model what to do next in a step: call tools, or sum up."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from agent.errors import ModelError
from agent.limits import MAX_EXECUTOR_STEPS
from agent.ports import ChatModel, Deps, Runtime
from agent.prompts.research_prompts import insert_results, read_current_step, read_evidence_key
from agent.state import AgentState
from agent.text.storable import is_storable, make_storable

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

LONGEST_ANSWER = 20_000
LONGEST_CALLS = 20_000
_FALLBACK = "without-a-model"  # the id of the search that takes the place of a model that failed

log = logging.getLogger(__name__)


async def executor_llm(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Let the model act once; in the last round it has no tools and must sum up.

    Reads messages, executor_call_count, plan, current_step, approved. Writes messages, executor_call_count. A model
    that fails is replaced by one search for the step's text, and the step ends after it.
    """
    from langchain_core.messages import AIMessage  # takes long, and without a model nothing comes here

    deps = runtime.context
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
    try:
        return _limit_reply(
            await model.reply_with_tools(insert_results(messages, texts, deps), tools, task="executor_llm")
        )
    except ModelError as error:
        log.warning("a step goes on without the model: %s", error)
        return None


def _limit_reply(reply: AIMessage) -> AIMessage:
    """Keep a reply as it is, signatures and all, unless it is far too long to be meant or no store would take it."""
    from langchain_core.messages import AIMessage  # as above

    calls = [*reply.tool_calls, *reply.invalid_tool_calls]
    text = str(reply.text)
    if (
        len(text) <= LONGEST_ANSWER
        and is_storable(text)
        and all(is_storable(call) for call in calls)
        and len(json.dumps(calls, default=str)) <= LONGEST_CALLS
    ):
        return reply
    log.warning("a reply of the model could not be kept and has been cut to its text")
    return AIMessage(make_storable(text[:LONGEST_ANSWER]))
