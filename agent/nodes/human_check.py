"""Waits for a person to approve what costs much or leaves the house; nothing else happens in this node."""

from __future__ import annotations

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent.limits import WEB_SEARCH
from agent.nodes.planner import plan_cost
from agent.ports import Deps
from agent.research.approval import is_approval
from agent.state import AgentState
from agent.tools.web import outgoing

ABORTED = "Stopped: that was not approved, so nothing more was done. Ask again, or ask for less."


async def human_check(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause, and go on with the reply.

    Reads pause_reason, plan, router_output, approved. Writes approved, pause_reason, and final_answer on an abort.
    """
    reason = state.get("pause_reason", "") or WEB_SEARCH
    request = _request(reason, state, runtime.context)
    if reason == WEB_SEARCH and (runtime.context.web is None or not request["steps"]):
        return {"pause_reason": ""}  # there is nothing to approve; the call will say so
    # Once resumed this node runs again from its first line, so what is asked comes from the state alone.
    reply = interrupt(request)
    if is_approval(reply):
        return {"approved": [*state.get("approved", []), reason], "pause_reason": ""}
    return {"final_answer": ABORTED, "is_aborted": True, "pause_reason": ""}


def _request(reason: str, state: AgentState, deps: Deps) -> dict[str, object]:
    """What the person is to decide about, in full."""
    steps = state.get("plan", [])
    if reason == WEB_SEARCH and not steps:
        decision = state.get("router_output")
        calls = decision["calls"] if decision is not None else []
        queries = [str(call["args"].get("query", "")) for call in calls if deps.tools.needs_approval(call["tool"])]
        sent = [outgoing(query, deps.redact(deps.asked)) for query in queries]
        return {"kind": reason, "steps": [f"Search the web for: {query}" for query in sent if query], "model_calls": 0}
    return {"kind": reason, "steps": list(steps), "model_calls": plan_cost(steps)}
