"""Makes the tool calls of the model's last message; every call gets an answer, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent.ports import Deps, Runtime, ToolOutcome
from agent.state import AgentState
from agent.tools.tool_calls import (
    ToolCallResult,
    add_flags,
    append_tool_records,
    make_call_key,
    merge_refs,
    run_tool_calls,
)

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

UNREADABLE = "The arguments of this call are not valid JSON. Call the tool again with correct ones."


async def tool_node(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Call the tools and answer with the keys of their results.

    Reads messages, approved, retrieved, tool_history, flagged. Writes messages, retrieved, tool_history, flagged.
    """
    from langchain_core.messages import AIMessage  # takes long, and without a model nothing comes here

    deps = runtime.context
    last = next(reversed(state.get("messages", [])), None)
    if not isinstance(last, AIMessage):
        return {}
    wanted: list[tuple[str, Mapping[str, Any]]] = [(call["name"], call["args"]) for call in last.tool_calls]
    called = await run_tool_calls(deps, wanted, approved=state.get("approved", []))
    unreadable = [await _record_unreadable(deps, str(call.get("name") or "")) for call in last.invalid_tool_calls]
    ids = [call.get("id") or "" for call in (*last.tool_calls, *last.invalid_tool_calls)]
    results = [*called, *unreadable]
    return {
        "messages": [_make_message(result, call_id) for result, call_id in zip(results, ids, strict=True)],
        "retrieved": merge_refs(state.get("retrieved", []), called),
        "tool_history": append_tool_records(state.get("tool_history", []), results),
        "flagged": add_flags(state.get("flagged", []), called, deps),
    }


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
