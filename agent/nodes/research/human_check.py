"""Waits for a person to approve what costs much or leaves the house; nothing else happens in this node."""

from __future__ import annotations

from agent.guard.approval import is_approval, list_unapproved_tools
from agent.limits import count_plan_calls
from agent.ports import Deps, Runtime
from agent.state import AgentState, ToolRequest

ABORTED = "Stopped: that was not approved, so nothing more was done. Ask again, or ask for less."


async def human_check(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause, and continue with the reply.

    Reads pause_reason, plan, router_output, approved. Writes approved, pause_reason, and final_answer on an abort.
    """
    reason = state.get("pause_reason", "")
    approvals = _list_approvals(reason, state, runtime.context)
    if not approvals:
        return {"pause_reason": ""}  # there is nothing to approve; the call will say so
    from langgraph.types import interrupt  # takes a second, and without a model nothing comes here

    # Once resumed this node runs again from its first line, so what is asked comes from the state alone.
    reply = interrupt(_make_request(reason, state, [description for _, description in approvals]))
    if is_approval(reply):
        names = dict.fromkeys(name for name, _ in approvals)
        return {"approved": [*state.get("approved", []), *names], "pause_reason": ""}
    return {"final_answer": ABORTED, "is_aborted": True, "pause_reason": ""}


def _list_approvals(reason: str, state: AgentState, deps: Deps) -> list[tuple[str, str]]:
    """What a yes would approve, each with its description: nobody approves what was not shown."""
    if reason == "plan":
        return [("plan", "")]
    tools = list_unapproved_tools(reason.split(), state, deps).split()
    calls = _get_pending_calls(state)
    if calls is None:
        return [(tool, f"Use the tool {tool}") for tool in tools]
    wanted = [call for call in calls if call["tool"] in tools]
    described = [(call["tool"], deps.tools.describe_call(call["tool"], call["args"], deps)) for call in wanted]
    return [(tool, description) for tool, description in described if description]


def _get_pending_calls(state: AgentState) -> list[ToolRequest] | None:
    """The calls that the router chose, or the model that answers; None where it is a plan that waits."""
    decision = state.get("router_output")
    return decision["calls"] if decision is not None and decision["route"] == "use_tool" else None


def _make_request(reason: str, state: AgentState, descriptions: list[str]) -> dict[str, object]:
    """Describe in full what the person decides about."""
    if _get_pending_calls(state) is not None:
        return {"kind": reason, "steps": descriptions, "model_calls": 0}
    steps = state.get("plan", [])
    return {"kind": reason, "steps": [*filter(None, descriptions), *steps], "model_calls": count_plan_calls(steps)}
