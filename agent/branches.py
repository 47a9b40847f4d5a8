"""The branches of the graph: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from agent.limits import MAX_EXECUTOR_STEPS, MAX_ITERATIONS
from agent.state import AgentState, is_answering


def route_after_gateway(state: AgentState) -> Literal["conversation_memory", "input_preprocessor"]:
    """Continue only with a question that has passed."""
    return "input_preprocessor" if state.get("gateway_passed") else "conversation_memory"


def route_after_preprocessor(
    state: AgentState,
) -> Literal["conversation_memory", "out_of_scope", "synthesis", "router", "setup_executor"]:
    """Choose by intent; only what needs the code goes to the router.

    What leans on the last answer continues with its evidence, where the model has tools to look for more.
    """
    match state.get("intent"):
        case "history_request":
            return "conversation_memory"
        case "out_of_scope":
            return "out_of_scope"
        case "follow_up":
            return "setup_executor" if state.get("mode") == "tools" and state.get("is_follow_up") else "synthesis"
        case _:
            return "router"


def route_after_router(
    state: AgentState,
) -> Literal["retrieval", "tool_executor", "human_check", "planner", "clarify", "synthesis"]:
    """Do what the router chose; write with what there is when the turn has gone round often enough."""
    decision = state.get("router_output")
    if decision is None or state.get("iteration_count", 0) >= MAX_ITERATIONS:
        return "synthesis"
    match decision["route"]:
        case "retrieve":
            return "retrieval"
        case "use_tool":
            return "human_check" if state.get("pause_reason") else "tool_executor"
        case "investigate":
            return "planner"
        case "clarify" if not state.get("clarified"):
            return "clarify"
        case _:
            return "synthesis"


def route_after_retrieval(state: AgentState) -> Literal["grade_documents", "setup_executor", "synthesis"]:
    """Grade a ranking; exact lookups need none, unless one that found nothing has become a search."""
    decision = state.get("router_output")
    if decision is None or not decision["fast_path"]:
        return "grade_documents"
    is_kind = any("parts" in request for request in decision["requests"])
    is_ranked = any(ref["role"] == "hit" for ref in state.get("retrieved", []))
    return "grade_documents" if is_kind and is_ranked else _choose_writer(state)


def route_after_grading(state: AgentState) -> Literal["router", "setup_executor", "synthesis"]:
    """Look again for what was not enough while rounds are left; a model that has tools does so itself."""
    again = state.get("grade") == "rewrite" and state.get("iteration_count", 0) < MAX_ITERATIONS
    return "router" if again else _choose_writer(state)


def _choose_writer(state: AgentState) -> Literal["setup_executor", "synthesis"]:
    return "setup_executor" if state.get("mode") == "tools" else "synthesis"


def route_after_planner(state: AgentState) -> Literal["human_check", "setup_executor"]:
    """Ask a person about a plan that needs it."""
    return "human_check" if state.get("pause_reason") else "setup_executor"


def route_after_human_check(
    state: AgentState,
) -> Literal["setup_executor", "tool_executor", "tool_node", "conversation_memory"]:
    """Continue with what was approved: the plan, or the calls of the router or of the model that answers."""
    if state.get("is_aborted"):
        return "conversation_memory"
    decision = state.get("router_output")
    if decision is None or decision["route"] != "use_tool":
        return "setup_executor"
    return "tool_node" if state.get("mode") == "tools" else "tool_executor"


def route_after_executor(
    state: AgentState,
) -> Literal[
    "tool_node",
    "aggregate",
    "human_check",
    "planner",
    "clarify",
    "out_of_scope",
    "router",
    "check_citations",
    "synthesis",
]:
    """Follow the model that answers: its calls, or its answer; within a step, make its calls while rounds are left."""
    if state.get("mode") == "tools" and is_answering(state):
        return _follow_answering(state)
    if state.get("mode") == "forms" and not state.get("plan"):
        return "router"  # the model has turned out to be one that cannot call tools
    return (
        "tool_node"
        if state.get("wants_tools") and state.get("executor_call_count", 0) < MAX_EXECUTOR_STEPS
        else "aggregate"
    )


def _follow_answering(
    state: AgentState,
) -> Literal["tool_node", "human_check", "planner", "clarify", "out_of_scope", "check_citations", "synthesis"]:
    if state.get("final_answer"):
        return "check_citations"
    if state.get("intent") == "out_of_scope":
        return "out_of_scope"
    decision = state.get("router_output")
    match "generate" if decision is None else decision["route"]:
        case "use_tool":
            return "human_check" if state.get("pause_reason") else "tool_node"
        case "investigate":
            return "planner"
        case "clarify":
            return "clarify"
        case _:
            return "synthesis"


def route_after_refinery(state: AgentState) -> Literal["setup_executor", "planner", "synthesis"]:
    """Take the next step, plan anew, or write the answer."""
    if state.get("loop_decision") != "CONTINUE" or state.get("iteration_count", 0) > MAX_ITERATIONS:
        return _choose_writer(state)
    remain = state.get("current_step", 0) < len(state.get("plan", []))
    return "setup_executor" if remain and state.get("plan_applies") else "planner"
