"""The graph: nodes, edges and branches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, get_args, get_type_hints

from agent.guard.reading_tools import harden
from agent.nodes.conversation_memory import conversation_memory
from agent.nodes.direct_replies import clarify, out_of_scope
from agent.nodes.grade_documents import grade_documents
from agent.nodes.input_preprocessor import input_preprocessor
from agent.nodes.research import aggregate, human_check, planner, refinery, setup_executor
from agent.nodes.retrieval import retrieval
from agent.nodes.router import router, tool_executor
from agent.nodes.security_gateway import security_gateway
from agent.nodes.synthesis import check_citations, synthesis
from agent.nodes.tool_loop import executor_llm, tool_node
from agent.ports import Deps, NodeRuntime, Runtime
from agent.state import AgentState, is_answering, is_hardened

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.types import Command

    Graph = StateGraph[AgentState, Deps, AgentState, AgentState]


def route_after_gateway(state: AgentState) -> Literal["conversation_memory", "input_preprocessor"]:
    """Continue only with a question that has passed."""
    return "input_preprocessor" if state.get("gateway_passed") else "conversation_memory"


def route_after_preprocessor(
    state: AgentState,
) -> Literal["conversation_memory", "out_of_scope", "synthesis", "router", "setup_executor"]:
    """Choose by intent; only questions about code go to the router.

    A reference to the last answer continues with its evidence, if the model has tools to look for more.
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
    """Follow the router's choice; after too many rounds, write with the evidence so far."""
    decision = state.get("router_output")
    if decision is None:
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
    """Look again if the results did not suffice; a model with tools does so itself."""
    return "router" if state.get("grade") == "rewrite" else _choose_writer(state)


def _choose_writer(state: AgentState) -> Literal["setup_executor", "synthesis"]:
    return "setup_executor" if state.get("mode") == "tools" else "synthesis"


def route_after_planner(state: AgentState) -> Literal["human_check", "setup_executor"]:
    """Ask a person about a plan that needs it."""
    return "human_check" if state.get("pause_reason") else "setup_executor"


def route_after_human_check(
    state: AgentState,
) -> Literal["setup_executor", "tool_executor", "tool_node", "conversation_memory"]:
    """Continue with what was approved: the plan, or the calls of the router or of the answering model."""
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
    """Follow the model that answers: its calls, or its answer; within a step, make its calls."""
    if state.get("mode") == "tools" and is_answering(state):
        return _follow_answering(state)
    if state.get("mode") == "forms" and not state.get("plan"):
        return "router"  # the model has turned out to be one that cannot call tools
    return "tool_node" if state.get("wants_tools") else "aggregate"


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
    """Take the next step, plan again, or write the answer."""
    if state.get("loop_decision") != "CONTINUE":
        return _choose_writer(state)
    remain = state.get("current_step", 0) < len(state.get("plan", []))
    return "setup_executor" if remain and state.get("plan_applies") else "planner"


Branch = Callable[[AgentState], str]
Changes_co = TypeVar("Changes_co", covariant=True)


class Node(Protocol[Changes_co]):
    """A coroutine function from the state of a turn to its changes."""

    __name__: str

    def __call__(self, state: AgentState, runtime: Runtime[Deps]) -> Awaitable[Changes_co]:
        """Do the node's part."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node and its successor: another node, a branch's choice, or nothing."""

    node: Node[AgentState]
    then: Branch | str | None

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.__name__

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the names of the nodes that may follow; none for the last."""
        if callable(self.then):
            return get_args(get_type_hints(self.then)["return"])
        return () if self.then is None else (self.then,)

    async def run(self, state: AgentState, runtime: Runtime[Deps]) -> AgentState:
        """Run the node; a watched turn is restricted here, so that no node can forget to."""
        return await self.node(state, NodeRuntime(harden(runtime.context)) if is_hardened(state) else runtime)

    def choose_next(self, state: AgentState) -> str | None:
        """Return the name of the next node; None at the end."""
        return self.then(state) if callable(self.then) else self.then


def list_steps() -> Sequence[Step]:
    """Return the nodes and edges; a turn begins with the first."""
    return (
        Step(security_gateway, route_after_gateway),
        Step(input_preprocessor, route_after_preprocessor),
        Step(out_of_scope, "conversation_memory"),
        Step(router, route_after_router),
        Step(retrieval, route_after_retrieval),
        Step(grade_documents, route_after_grading),
        Step(tool_executor, "router"),
        Step(clarify, "router"),
        Step(planner, route_after_planner),
        Step(human_check, route_after_human_check),
        Step(setup_executor, "executor_llm"),
        Step(executor_llm, route_after_executor),
        Step(tool_node, "executor_llm"),
        Step(aggregate, "refinery"),
        Step(refinery, route_after_refinery),
        Step(synthesis, "check_citations"),
        Step(check_citations, "conversation_memory"),
        Step(conversation_memory, None),
    )


def build_graph() -> Graph:
    """Return the graph, ready to compile with a checkpointer."""
    from langgraph.graph import END, START, StateGraph  # takes a second, which not every question is worth

    graph: Graph = StateGraph(AgentState, context_schema=Deps)
    steps = list_steps()
    graph.add_edge(START, steps[0].name)
    for step in steps:
        if callable(step.then):
            graph.add_node(step.name, _add_branch(step), destinations=step.targets)
        else:
            graph.add_node(step.name, _wrap_node(step))
            graph.add_edge(step.name, step.then or END)
    return graph


def _wrap_node(step: Step) -> Node[AgentState]:
    @wraps(step.node)
    async def run(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
        return await step.run(state, runtime)

    return run


def _add_branch(step: Step) -> Node[Command[str | None]]:
    """Let a node name the next one itself: a conditional edge would read the whole state a second time."""
    from langgraph.types import Command

    @wraps(step.node)
    async def go(state: AgentState, runtime: Runtime[Deps]) -> Command[str | None]:
        changes = await step.run(state, runtime)
        return Command(update=changes, goto=step.choose_next({**state, **changes}) or ())

    return go
