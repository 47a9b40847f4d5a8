"""The graph: nodes and edges, nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Protocol, TypeVar, get_args, get_type_hints

from agent.branches import (
    route_after_executor,
    route_after_gateway,
    route_after_grading,
    route_after_human_check,
    route_after_planner,
    route_after_preprocessor,
    route_after_refinery,
    route_after_retrieval,
    route_after_router,
)
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
from agent.state import AgentState, is_hardened

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.types import Command

    Graph = StateGraph[AgentState, Deps, AgentState, AgentState]

Branch = Callable[[AgentState], str]
Changes_co = TypeVar("Changes_co", covariant=True)


class Node(Protocol[Changes_co]):
    """A coroutine function from the state of a turn to what it changes of it."""

    __name__: str

    def __call__(self, state: AgentState, runtime: Runtime[Deps]) -> Awaitable[Changes_co]:
        """Do the node's part."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node, and what follows it: another one, what a branch chooses, or nothing."""

    node: Node[AgentState]
    then: Branch | str | None

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.__name__

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the nodes that may follow; none for the last."""
        if callable(self.then):
            return get_args(get_type_hints(self.then)["return"])
        return () if self.then is None else (self.then,)

    async def run(self, state: AgentState, runtime: Runtime[Deps]) -> AgentState:
        """Run the node; in a watched turn it has less to work with, and no node can forget to."""
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
    """Return the graph, ready to be compiled with a checkpointer."""
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
    """Let a node name the next one itself: a conditional edge would read the whole state a second time for that."""
    from langgraph.types import Command

    @wraps(step.node)
    async def go(state: AgentState, runtime: Runtime[Deps]) -> Command[str | None]:
        changes = await step.run(state, runtime)
        return Command(update=changes, goto=step.choose_next({**state, **changes}) or ())

    return go
