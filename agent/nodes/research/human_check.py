"""Waits for a person to approve what costs much or leaves the house; nothing else happens in this node."""

from __future__ import annotations

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent.guard.approval import is_approval, unapproved_tools
from agent.limits import count_plan_calls
from agent.ports import Deps
from agent.state import AgentState, ToolRequest

ABORTED = "Stopped: that was not approved, so nothing more was done. Ask again, or ask for less."


async def human_check(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause, and go on with the reply.

    Reads pause_reason, plan, router_output, approved. Writes approved, pause_reason, and final_answer on an abort.
    """
    reason = state.get("pause_reason", "")
    shown = _shown(reason, state, runtime.context)
    if not shown:
        return {"pause_reason": ""}  # there is nothing to approve; the call will say so
    # Once resumed this node runs again from its first line, so what is asked comes from the state alone.
    reply = interrupt(_request(reason, state, [said for _, said in shown]))
    if is_approval(reply):
        asked = dict.fromkeys(what for what, _ in shown)
        return {"approved": [*state.get("approved", []), *asked], "pause_reason": ""}
    return {"final_answer": ABORTED, "is_aborted": True, "pause_reason": ""}


def _shown(reason: str, state: AgentState, deps: Deps) -> list[tuple[str, str]]:
    """What is approved by a yes, each with what the person is told of it: nobody approves what was not shown."""
    if reason == "plan":
        return [("plan", "")]
    tools = unapproved_tools(reason.split(), state, deps).split()
    calls = _calls(state)
    if calls is None:
        return [(tool, f"Use the tool {tool}") for tool in tools]
    wanted = [call for call in calls if call["tool"] in tools]
    told = [(call["tool"], deps.tools.describe_call(call["tool"], call["args"], deps)) for call in wanted]
    return [(tool, said) for tool, said in told if said]


def _calls(state: AgentState) -> list[ToolRequest] | None:
    """The calls that the router chose; None where it is a plan that waits."""
    decision = state.get("router_output")
    return decision["calls"] if decision is not None and decision["route"] == "use_tool" else None


def _request(reason: str, state: AgentState, said: list[str]) -> dict[str, object]:
    """What the person is to decide about, in full."""
    if _calls(state) is not None:
        return {"kind": reason, "steps": said, "model_calls": 0}
    steps = state.get("plan", [])
    return {"kind": reason, "steps": [*filter(None, said), *steps], "model_calls": count_plan_calls(steps)}
