"""Decides what to fetch: exact lookups when the question names its target, one broad search otherwise."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.evidence.fast_path import decide
from agent.ports import Deps
from agent.state import AgentState


async def router(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Choose the retrieval requests. Reads cleaned_query. Writes router_output."""
    runtime.context.emit("step_start", node="router", stage="Choosing where to look")
    return {"router_output": await decide(state.get("cleaned_query", ""), runtime.context.code)}
