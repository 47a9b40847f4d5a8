"""Asks the model what to do next: call tools, or write the answer; within a step of a plan, call tools or sum up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from agent import chat
from agent.answering.replies import KeptReply, limit_reply
from agent.answering.rounds import answer_with_tools
from agent.errors import ModelError
from agent.limits import MAX_EXECUTOR_STEPS
from agent.ports import ChatModel, Deps, Runtime
from agent.prompts.research_prompts import insert_results, read_evidence_key, read_step
from agent.prompts.step_messages import has_calls, is_open, mark_step, split_by_step
from agent.state import AgentState, is_answering

if TYPE_CHECKING:
    AskModel = Callable[[Sequence[chat.BaseMessage]], Awaitable[chat.AIMessage | None]]

_FALLBACK = "without-a-model"  # the id of the search that takes the place of a model that failed

log = logging.getLogger(__name__)


async def executor_llm(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Let the model act once, about all steps that are due side by side; in the last round it has no tools.

    Reads messages, executor_call_count, rounds, plan, dependent, current_step, loop_decision, approved, mode,
    nonce, shown, retrieved, findings, clarified, router_output. Writes messages, executor_call_count, wants_tools;
    where it answers also router_output, pause_reason, proposal, intent, mode, error, final_answer, answer_model,
    citations, main_symbol, main_kind and rounds. A model that fails within a step is replaced by one search for the
    step's text, and the step ends.
    """
    deps = runtime.context
    if is_answering(state):
        return await answer_with_tools(state, deps)
    count = state.get("executor_call_count", 0)
    open_steps = [
        (step, conversation)
        for step, conversation in split_by_step(state.get("messages", []), state).items()
        if is_open(conversation)
    ]
    # The turn's last call is the answer's, and each step has one before it to sum up.
    is_last = count + 1 >= MAX_EXECUTOR_STEPS or deps.budget.is_short_of(2 * len(open_steps) + 1)
    may_ask = not deps.budget.is_short_of(len(open_steps) + 1)
    ask = partial(_ask_model, state, deps, is_last=is_last, is_alone=len(open_steps) == 1) if may_ask else None
    replies = await asyncio.gather(*(_take_step(state, step, conversation, ask) for step, conversation in open_steps))
    begun = any(call["id"] == _FALLBACK for reply in replies for call in reply.tool_calls)
    return {
        "messages": [mark_step(reply, step) for reply, (step, _) in zip(replies, open_steps, strict=True)],
        "executor_call_count": min(count + 1, MAX_EXECUTOR_STEPS - 1) if begun else count + 1,
        "wants_tools": any(map(has_calls, replies)),
    }


async def _take_step(
    state: AgentState, step: int, conversation: Sequence[chat.BaseMessage], ask: AskModel | None
) -> chat.AIMessage:
    reply = await ask(conversation) if ask is not None else None
    if reply is not None:
        return reply
    # Once a tool has answered there is something to aggregate; before that, one search is better than nothing.
    is_fresh = not any(read_evidence_key(message) for message in conversation)
    search = {"name": "search_codebase", "args": {"query": read_step(state, step)}, "id": _FALLBACK}
    return chat.AIMessage("", tool_calls=[{**search, "type": "tool_call"}] if is_fresh else [])


async def _ask_model(
    state: AgentState, deps: Deps, messages: Sequence[chat.BaseMessage], *, is_last: bool, is_alone: bool
) -> chat.AIMessage | None:
    model: ChatModel | None = deps.models.main
    calls = [call for message in messages if isinstance(message, chat.AIMessage) for call in message.tool_calls]
    if model is None or any(call["id"] == _FALLBACK for call in calls):  # without one, or it has failed in this step
        return None
    texts = await deps.evidence.texts(filter(None, map(read_evidence_key, messages)))
    tools = [] if is_last else deps.tools.menu(deps, approved=state.get("approved", []))
    filled = insert_results(messages, texts, deps, nonce=state.get("nonce", ""))
    kept = None if is_alone else KeptReply(deps.evidence, filled)
    if kept is not None and (reply := await kept.find()) is not None:
        return reply
    try:
        reply = limit_reply(await model.reply_with_tools(filled, tools, task="executor_llm"))
    except ModelError as error:
        log.warning("a step goes on without the model: %s", error)
        return None
    if kept is not None:
        await kept.keep(reply)
    return reply
