"""The branches of the graph: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from agent.state import AgentState


def after_gateway(state: AgentState) -> Literal["conversation_memory", "input_preprocessor"]:
    """Go on only with a question that has passed."""
    return "input_preprocessor" if state.get("gateway_passed") else "conversation_memory"


def after_preprocessor(
    state: AgentState,
) -> Literal["conversation_memory", "out_of_scope", "synthesis", "router"]:
    """Choose by intent; only what needs the code goes to the router."""
    match state.get("intent"):
        case "history_request":
            return "conversation_memory"
        case "out_of_scope":
            return "out_of_scope"
        case "follow_up":
            return "synthesis"
        case _:
            return "router"


def after_router(state: AgentState) -> Literal["retrieval", "synthesis"]:
    """Fetch what the router asked for, or write with what there is."""
    decision = state.get("router_output")
    return "retrieval" if decision is not None and decision["route"] == "retrieve" else "synthesis"


def after_retrieval(state: AgentState) -> Literal["grade_documents", "synthesis"]:
    """Grade a ranking; exact lookups need none."""
    decision = state.get("router_output")
    return "synthesis" if decision is not None and decision["fast_path"] else "grade_documents"
