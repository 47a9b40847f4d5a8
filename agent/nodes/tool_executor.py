"""Makes the tool calls that the router chose, and returns to it."""

from __future__ import annotations

from agent.ports import Deps, Runtime
from agent.state import AgentState, RetrievalMetadata, make_empty_metadata
from agent.tools.tool_calls import ToolCallResult, ToolCalls, add_flags, append_tool_records, merge_refs


async def tool_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Call the tools side by side through the registry; what they read becomes evidence.

    Reads router_output, approved, retrieved, tool_history, retrieval_metadata, flagged. Writes retrieved,
    tool_history, retrieval_metadata, flagged.
    """
    deps = runtime.context
    decision = state.get("router_output")
    wanted = [(call["tool"], call["args"]) for call in decision["calls"]] if decision is not None else []
    names = [name[:40] for name in dict.fromkeys(name for name, _ in wanted)][:4]
    deps.emit("step_start", node="tool_executor", stage=f"Using {', '.join(names) or 'no tool'}")
    called = await ToolCalls(deps, state.get("approved", [])).run(wanted)
    return {
        "retrieved": merge_refs(state.get("retrieved", []), called),
        "tool_history": append_tool_records(state.get("tool_history", []), called),
        "retrieval_metadata": _add_call_results(state.get("retrieval_metadata", make_empty_metadata()), called),
        "flagged": add_flags(state.get("flagged", []), called, deps),
    }


def _add_call_results(metadata: RetrievalMetadata, called: list[ToolCallResult]) -> RetrievalMetadata:
    """Note what was searched for, and what failed."""
    queries = [str(one.args.get("query") or one.args.get("pattern") or "")[:200] for one in called if one.outcome.ok]
    failures = [one.outcome.text for one in called if not one.outcome.ok]
    return {
        **metadata,
        "searched": list(dict.fromkeys([*metadata["searched"], *filter(None, queries)])),
        "failures": list(dict.fromkeys([*metadata["failures"], *failures])),
    }
