"""Makes the tool calls of the model's last message; every call gets an answer, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent.ports import Deps, Runtime, ToolOutcome
from agent.prompts.numbered_evidence import EvidenceNumbers
from agent.prompts.research_prompts import list_evidence_keys
from agent.state import AgentState
from agent.tools.tool_calls import (
    TOO_MANY,
    ToolCallResult,
    add_flags,
    append_tool_records,
    make_call_key,
    merge_refs,
    run_tool_calls,
)

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

REPEATED = "This call was made before; its result is above. Use that, or ask for something else."
FAILED_BEFORE = "This call has failed before, and was not made again: "
UNREADABLE = "The arguments of this call are not valid JSON. Call the tool again with correct ones."


async def tool_node(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Call the tools and answer with the keys of their results, in which every place has its evidence id.

    Reads messages, approved, retrieved, tool_history, flagged, shown. Writes messages, retrieved, tool_history,
    flagged, shown.
    """
    from langchain_core.messages import AIMessage  # takes long, and without a model nothing comes here

    deps = runtime.context
    last = next(reversed(state.get("messages", [])), None)
    if not isinstance(last, AIMessage):
        return {}
    wanted: list[tuple[str, Mapping[str, Any]]] = [(call["name"], call["args"]) for call in last.tool_calls]
    approved = state.get("approved", [])
    repeats = await _find_repeats(state, deps, wanted)
    called = await run_tool_calls(
        deps, [call for at, call in enumerate(wanted) if at not in repeats], approved=approved
    )
    numbers = EvidenceNumbers(state.get("shown", []))
    for result in called:
        await deps.evidence.keep(result.key, numbers.number_result(result.outcome.text, result.outcome.refs))
    made = iter(called)
    answered = [repeats[at] if at in repeats else next(made) for at in range(len(wanted))]
    unreadable = [await _record_unreadable(deps, str(call.get("name") or "")) for call in last.invalid_tool_calls]
    ids = [call.get("id") or "" for call in (*last.tool_calls, *last.invalid_tool_calls)]
    results = [*answered, *unreadable]
    _show_failures(deps, results, called, approved)
    return {
        "messages": [_make_message(result, call_id) for result, call_id in zip(results, ids, strict=True)],
        "retrieved": merge_refs(state.get("retrieved", []), called),
        "tool_history": append_tool_records(state.get("tool_history", []), [*called, *unreadable]),
        "flagged": add_flags(state.get("flagged", []), called, deps),
        "shown": numbers.shown,
    }


async def _find_repeats(
    state: AgentState, deps: Deps, wanted: Sequence[tuple[str, Mapping[str, Any]]]
) -> dict[int, ToolCallResult]:
    """Return the answers to calls that would repeat one: that failed in this turn, or whose result is still shown."""
    ended = {record["key"]: record["ok"] for record in state.get("tool_history", [])}
    told = set(list_evidence_keys(state.get("messages", [])))
    found: dict[int, ToolCallResult] = {}
    for at, (name, args) in enumerate(wanted):
        key = make_call_key(name, args)
        if ended.get(key) is False and not deps.tools.is_approval_required(name):
            text = FAILED_BEFORE + (await deps.evidence.texts([key])).get(key, "")
        elif ended.get(key) and key in told:
            text = REPEATED
        else:
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


def _make_message(result: ToolCallResult, call_id: str) -> ToolMessage:
    """Stand for a tool result; its text is put in when the model is asked next."""
    from langchain_core.messages import ToolMessage  # as above

    return ToolMessage(
        "",
        name=result.record["tool"],
        tool_call_id=call_id,
        status="success" if result.outcome.ok else "error",
        additional_kwargs={"evidence": result.key, "found": len(result.outcome.refs)},
    )
