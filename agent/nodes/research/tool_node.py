"""Makes the tool calls of the model's newest replies; every call gets an answer, whatever is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent import chat
from agent.ports import Deps, Runtime, ToolOutcome
from agent.prompts.numbered_evidence import EvidenceNumbers
from agent.prompts.research_prompts import (
    find_fitting_results,
    list_evidence_keys,
    make_result_message,
    read_evidence_key,
)
from agent.prompts.step_messages import has_calls, mark_step, read_step_mark, split_by_step
from agent.state import AgentState, CitationRef, is_answering
from agent.tools.tool_calls import (
    TOO_MANY,
    ToolCallResult,
    ToolCalls,
    add_flags,
    append_tool_records,
    make_call_key,
    merge_refs,
)

REPEATED = "This call was made before; its result is there. Use that, or ask for something else."
FAILED_BEFORE = "This call has failed before, and was not made again: "
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
    """Return what the conversation about the answer began with; one about a step has begun otherwise."""
    if not is_answering(state):
        return []
    return [ref for ref in state.get("shown", []) if ref["mark"] in state.get("told", [])]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweredReply:
    """What came of the calls of one reply: a message for each, those that were made, and those that nobody can read."""

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
    """Return the answers to calls that would repeat one: that failed in this turn, or whose result is shown."""
    ended = {record["key"]: record["ok"] for record in state.get("tool_history", [])}
    found: dict[int, ToolCallResult] = {}
    begun: set[str] = set()
    for at, (name, args) in enumerate(wanted):
        key = make_call_key(name, args)
        if ended.get(key) is False and not deps.tools.is_approval_required(name):
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
    """Tell of the calls that no tool has told of, because none was called."""
    callable_names = {str(tool["name"]) for tool in deps.tools.menu(deps, approved=approved)}
    for result in results:
        was_called = any(result is one for one in called) and result.outcome.text != TOO_MANY
        if not result.outcome.ok and not (was_called and result.tool in callable_names):
            deps.emit("tool_end", tool=result.record["tool"], ok=False, found=0)


async def _record_unreadable(deps: Deps, name: str) -> ToolCallResult:
    key = make_call_key(name, {}, "unreadable")
    await deps.evidence.keep(key, UNREADABLE)
    return ToolCallResult(key=key, tool=name, args={}, outcome=ToolOutcome(text=UNREADABLE, ok=False))
