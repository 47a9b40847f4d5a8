"""The graph: nodes and edges, nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Protocol, TypeVar, get_args, get_type_hints

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

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
from agent.nodes.check_citations import check_citations
from agent.nodes.clarify import clarify
from agent.nodes.conversation_memory import conversation_memory
from agent.nodes.grade_documents import grade_documents
from agent.nodes.input_preprocessor import input_preprocessor
from agent.nodes.out_of_scope import out_of_scope
from agent.nodes.research.aggregate import aggregate
from agent.nodes.research.executor_llm import executor_llm
from agent.nodes.research.human_check import human_check
from agent.nodes.research.planner import planner
from agent.nodes.research.refinery import refinery
from agent.nodes.research.setup_executor import setup_executor
from agent.nodes.research.tool_node import tool_node
from agent.nodes.retrieval import retrieval
from agent.nodes.router import router
from agent.nodes.security_gateway import security_gateway
from agent.nodes.synthesis import synthesis
from agent.nodes.tool_executor import tool_executor
from agent.ports import Deps
from agent.state import AgentState, is_hardened

Graph = StateGraph[AgentState, Deps, AgentState, AgentState]
Branch = Callable[[AgentState], str]
Changes_co = TypeVar("Changes_co", covariant=True)


class Node(Protocol[Changes_co]):
    """A coroutine function from the state of a turn to what it changes of it."""

    __name__: str

    def __call__(self, state: AgentState, runtime: Runtime[Deps]) -> Awaitable[Changes_co]:
        """Do the node's part."""


def build_graph() -> Graph:
    """Return the graph, ready to be compiled with a checkpointer."""
    graph: Graph = StateGraph(AgentState, context_schema=Deps)

    _add(graph, security_gateway, route_after_gateway)
    _add(graph, input_preprocessor, route_after_preprocessor)
    _add(graph, out_of_scope)
    _add(graph, router, route_after_router)
    _add(graph, retrieval, route_after_retrieval)
    _add(graph, grade_documents, route_after_grading)
    _add(graph, tool_executor)
    _add(graph, clarify)
    _add(graph, planner, route_after_planner)
    _add(graph, human_check, route_after_human_check)
    _add(graph, setup_executor)
    _add(graph, executor_llm, route_after_executor)
    _add(graph, tool_node)
    _add(graph, aggregate)
    _add(graph, refinery, route_after_refinery)
    _add(graph, synthesis)
    _add(graph, check_citations)
    _add(graph, conversation_memory)

    graph.add_edge(START, "security_gateway")
    graph.add_edge("out_of_scope", "conversation_memory")
    graph.add_edge("tool_executor", "router")
    graph.add_edge("clarify", "router")
    graph.add_edge("setup_executor", "executor_llm")
    graph.add_edge("tool_node", "executor_llm")
    graph.add_edge("aggregate", "refinery")
    graph.add_edge("synthesis", "check_citations")
    graph.add_edge("check_citations", "conversation_memory")
    graph.add_edge("conversation_memory", END)
    return graph


def _add(graph: Graph, node: Node[AgentState], branch: Branch | None = None) -> None:
    """Add a node under its own name, with the branch that chooses the next one."""
    guarded = _wrap_node(node)
    if branch is None:
        graph.add_node(node.__name__, guarded)
    else:
        graph.add_node(
            node.__name__, _add_branch(guarded, branch), destinations=get_args(get_type_hints(branch)["return"])
        )


def _wrap_node(node: Node[AgentState]) -> Node[AgentState]:
    """Wrap a node so that in a watched turn it has less to work with; no node can forget to."""

    @wraps(node)
    async def run(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
        watched = runtime.override(context=harden(runtime.context)) if is_hardened(state) else runtime
        return await node(state, watched)

    return run


def _add_branch(node: Node[AgentState], branch: Branch) -> Node[Command[str]]:
    """Let a node name the next one itself: a conditional edge would read the whole state a second time for that."""

    @wraps(node)
    async def go(state: AgentState, runtime: Runtime[Deps]) -> Command[str]:
        changes = await node(state, runtime)
        return Command(update=changes, goto=branch({**state, **changes}))

    return go
