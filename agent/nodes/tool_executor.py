"""Makes the tool calls that the router chose, and hands back to it."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.ports import Deps
from agent.research.calls import Called, call_all, with_flags, with_records, with_refs
from agent.state import AgentState, RetrievalMetadata, no_metadata


async def tool_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Call the tools side by side through the registry; what they read becomes evidence.

    Reads router_output, approved, retrieved, tool_history, retrieval_metadata, flagged. Writes retrieved,
    tool_history, retrieval_metadata, flagged.
    """
    deps = runtime.context
    decision = state.get("router_output")
    wanted = [(call["tool"], call["args"]) for call in decision["calls"]] if decision is not None else []
    deps.emit("step_start", node="tool_executor", stage=_stage([name for name, _ in wanted]))
    called = await call_all(deps, wanted, approved=state.get("approved", []))
    return {
        "retrieved": with_refs(state.get("retrieved", []), called),
        "tool_history": with_records(state.get("tool_history", []), called),
        "retrieval_metadata": _noted(state.get("retrieval_metadata", no_metadata()), called),
        "flagged": with_flags(state.get("flagged", []), called, deps),
    }


def _stage(names: list[str]) -> str:
    known = [name[:40] for name in dict.fromkeys(names)][:4]
    return f"Using {', '.join(known)}" if known else "Using no tool"


def _noted(metadata: RetrievalMetadata, called: list[Called]) -> RetrievalMetadata:
    """Say what was searched, and what failed."""
    queries = [str(one.args.get("query") or one.args.get("pattern") or "")[:200] for one in called if one.outcome.ok]
    failures = [one.outcome.text for one in called if not one.outcome.ok]
    return {
        **metadata,
        "searched": list(dict.fromkeys([*metadata["searched"], *filter(None, queries)])),
        "failures": list(dict.fromkeys([*metadata["failures"], *failures])),
    }
