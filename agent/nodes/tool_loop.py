"""The nodes in which a model calls tools and finally writes: executor_llm asks it, tool_node makes its calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from agent import chat
from agent.answering.rounds import KeptReply, answer_with_tools, limit_reply
from agent.errors import ModelError
from agent.ports import ChatModel, Deps, Runtime, ToolOutcome
from agent.prompts.output_schemas import ASK_PERSON, is_turn_tool
from agent.prompts.prompt_evidence import EvidenceNumbers
from agent.prompts.research_prompts import (
    find_fitting_results,
    has_calls,
    insert_results,
    is_open,
    list_evidence_keys,
    make_result_message,
    mark_step,
    read_evidence_key,
    read_step,
    read_step_mark,
    split_by_step,
)
from agent.state import AgentState, CitationRef, is_answering
from agent.tools.registry import (
    TOO_MANY,
    ToolCallResult,
    ToolCalls,
    add_flags,
    append_tool_records,
    make_call_key,
    merge_refs,
)

_FALLBACK = "without-a-model"  # the id of the search that takes the place of a model that failed

log = logging.getLogger(__name__)


async def executor_llm(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Let the model act once, about all steps that are due side by side; in the last round it has no tools.

    Reads messages, executor_call_count, rounds, plan, dependent, current_step, loop_decision,
    approved, mode, nonce, shown, retrieved, findings, clarified, router_output. Writes messages,
    executor_call_count, wants_tools; after an answer also router_output, pause_reason, proposal,
    intent, mode, error, final_answer, answer_model, citations, main_symbol, main_kind and rounds. A
    model that fails within a step is replaced by one search for the step's text, and the step ends.
    """
    deps = runtime.context
    if is_answering(state):
        return await answer_with_tools(state, deps)
    count, most = state.get("executor_call_count", 0), deps.budget.ceilings.executor_steps
    open_steps = [
        (step, conversation)
        for step, conversation in split_by_step(state.get("messages", []), state).items()
        if is_open(conversation)
    ]
    # The turn's last call is the answer's, and each step has one before it to sum up.
    is_last = count + 1 >= most or deps.budget.is_short_of(2 * len(open_steps) + 1)
    may_ask = not deps.budget.is_short_of(len(open_steps) + 1)
    ask = partial(_ask_model, state, deps, is_last=is_last, is_alone=len(open_steps) == 1) if may_ask else None
    replies = await asyncio.gather(*(_take_step(state, step, conversation, ask) for step, conversation in open_steps))
    begun = any(call["id"] == _FALLBACK for reply in replies for call in reply.tool_calls)
    count = min(count + 1, most - 1) if begun else count + 1
    return {
        "messages": [mark_step(reply, step) for reply, (step, _) in zip(replies, open_steps, strict=True)],
        "executor_call_count": count,
        "wants_tools": count < most and any(map(has_calls, replies)),
    }


async def _take_step(
    state: AgentState,
    step: int,
    conversation: Sequence[chat.BaseMessage],
    ask: Callable[[Sequence[chat.BaseMessage]], Awaitable[chat.AIMessage | None]] | None,
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


REPEATED = "This call was made before; its result is there. Use that, or ask for something else."
FAILED_BEFORE = "This call has failed before, and was not made again: "
NOBODY = "Nobody can reply to a question here. Call another tool, or write the answer."
SPENT = "That can be called once in a turn, by itself and with valid arguments. Call another tool, or write the answer."
UNREADABLE = "The arguments of this call are not valid JSON. Call the tool again with correct ones."


async def tool_node(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Call the tools and answer with the keys of their results, in which every place has its evidence id.

    Reads mode, loop_decision, messages, plan, dependent, current_step, approved, retrieved, tool_history, flagged,
    shown, told. Writes messages, retrieved, tool_history, flagged, shown.
    """
    deps = runtime.context
    conversations = split_by_step(state.get("messages", []), state)
    asked = [each for each in conversations.values() if each and has_calls(each[-1])]
    calls = ToolCalls(deps, state.get("approved", []))
    answered = await asyncio.gather(*(_answer_calls(state, calls, conversation) for conversation in asked))
    called = list({one.key: one for each in answered for one in each.called}.values())
    numbers = EvidenceNumbers(state.get("shown", []))
    told = _list_told_places(state)
    for result in called:
        text = numbers.number_result(result.outcome.text, result.outcome.refs, told=told)
        await deps.evidence.keep(result.key, text)
    unreadable = [one for each in answered for one in each.unreadable]
    return {
        "messages": [message for each in answered for message in each.messages],
        "retrieved": merge_refs(state.get("retrieved", []), called),
        "tool_history": append_tool_records(state.get("tool_history", []), [*called, *unreadable]),
        "flagged": add_flags(state.get("flagged", []), called, deps),
        "shown": numbers.places,
    }


def _list_told_places(state: AgentState) -> list[CitationRef]:
    """Return the evidence that the conversation about the answer began with; steps begin differently."""
    if not is_answering(state):
        return []
    return [ref for ref in state.get("shown", []) if ref["mark"] in state.get("told", [])]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweredReply:
    """The results of one reply's calls: a message for each, the calls made, and the unreadable ones."""

    messages: Sequence[chat.ToolMessage]
    called: Sequence[ToolCallResult]
    unreadable: Sequence[ToolCallResult]


async def _answer_calls(state: AgentState, calls: ToolCalls, conversation: Sequence[chat.BaseMessage]) -> AnsweredReply:
    deps, approved = calls.deps, calls.approved
    reply = cast("chat.AIMessage", conversation[-1])
    wanted: list[tuple[str, Mapping[str, Any]]] = [(call["name"], call["args"]) for call in reply.tool_calls]
    repeats = await _find_repeats(state, deps, wanted, await _list_told(deps, conversation))
    called = await calls.run([call for at, call in enumerate(wanted) if at not in repeats])
    made = iter(called)
    results = [repeats[at] if at in repeats else next(made) for at in range(len(wanted))]
    unreadable = [await _record_unreadable(deps, str(call.get("name") or "")) for call in reply.invalid_tool_calls]
    _show_failures(deps, [*results, *unreadable], called, approved)
    ids = [call.get("id") or "" for call in (*reply.tool_calls, *reply.invalid_tool_calls)]
    messages = [
        make_result_message(one.record["tool"], call, one.key, ok=one.outcome.ok, found=len(one.outcome.refs))
        for one, call in zip([*results, *unreadable], ids, strict=True)
    ]
    step = read_step_mark(reply)
    return AnsweredReply(
        messages=messages if step is None else [mark_step(message, step) for message in messages],
        called=called,
        unreadable=unreadable,
    )


async def _list_told(deps: Deps, conversation: Sequence[chat.BaseMessage]) -> set[str]:
    """Return the keys of the results that a conversation still shows."""
    texts = await deps.evidence.texts(list_evidence_keys(conversation))
    return {read_evidence_key(conversation[at]) for at in find_fitting_results(conversation, texts)}


async def _find_repeats(
    state: AgentState, deps: Deps, wanted: Sequence[tuple[str, Mapping[str, Any]]], told: Collection[str]
) -> dict[int, ToolCallResult]:
    """Return the answers to calls that repeat a failed one of this turn, or a visible result."""
    ended = {record["key"]: record["ok"] for record in state.get("tool_history", [])}
    found: dict[int, ToolCallResult] = {}
    begun: set[str] = set()
    for at, (name, args) in enumerate(wanted):
        key = make_call_key(name, args)
        if is_turn_tool(name):
            text = SPENT if deps.can_ask or name != ASK_PERSON else NOBODY
        elif ended.get(key) is False and not deps.tools.is_approval_required(name):
            text = FAILED_BEFORE + (await deps.evidence.texts([key])).get(key, "")
        elif key in begun or (ended.get(key) and key in told):
            text = REPEATED
        else:
            begun.add(key)
            continue
        again = make_call_key(name, args, "repeat")
        await deps.evidence.keep(again, text)
        found[at] = ToolCallResult(key=again, tool=name, args=args, outcome=ToolOutcome(text=text, ok=False))
    return found


def _show_failures(
    deps: Deps, results: Sequence[ToolCallResult], called: Sequence[ToolCallResult], approved: Collection[str]
) -> None:
    """Report the failures of calls that reached no tool."""
    callable_names = {str(tool["name"]) for tool in deps.tools.menu(deps, approved=approved)}
    for result in results:
        was_called = any(result is one for one in called) and result.outcome.text != TOO_MANY
        if not result.outcome.ok and not (was_called and result.tool in callable_names):
            deps.emit("tool_end", tool=result.record["tool"], ok=False, found=0)


async def _record_unreadable(deps: Deps, name: str) -> ToolCallResult:
    key = make_call_key(name, {}, "unreadable")
    await deps.evidence.keep(key, UNREADABLE)
    return ToolCallResult(key=key, tool=name, args={}, outcome=ToolOutcome(text=UNREADABLE, ok=False))
