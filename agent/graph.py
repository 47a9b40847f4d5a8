"""The graph: nodes and edges, nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from langgraph.graph import END, START, StateGraph

from agent.nodes.aggregate import aggregate
from agent.nodes.check_citations import check_citations
from agent.nodes.clarify import clarify
from agent.nodes.conversation_memory import conversation_memory
from agent.nodes.executor_llm import executor_llm
from agent.nodes.grade_documents import grade_documents
from agent.nodes.human_check import human_check
from agent.nodes.input_preprocessor import input_preprocessor
from agent.nodes.out_of_scope import out_of_scope
from agent.nodes.planner import planner
from agent.nodes.refinery import refinery
from agent.nodes.retrieval import retrieval
from agent.nodes.router import router
from agent.nodes.security_gateway import security_gateway
from agent.nodes.setup_executor import setup_executor
from agent.nodes.synthesis import synthesis
from agent.nodes.tool_executor import tool_executor
from agent.nodes.tool_node import tool_node
from agent.ports import Deps
from agent.routing import (
    after_executor,
    after_gateway,
    after_grading,
    after_human_check,
    after_planner,
    after_preprocessor,
    after_refinery,
    after_retrieval,
    after_router,
)
from agent.state import AgentState


def build_graph() -> StateGraph[AgentState, Deps, AgentState, AgentState]:
    """Return the graph, ready to be compiled with a checkpointer."""
    graph = StateGraph(AgentState, context_schema=Deps)

    graph.add_node("security_gateway", security_gateway)
    graph.add_node("input_preprocessor", input_preprocessor)
    graph.add_node("out_of_scope", out_of_scope)
    graph.add_node("router", router)
    graph.add_node("retrieval", retrieval)
    graph.add_node("grade_documents", grade_documents)
    graph.add_node("tool_executor", tool_executor)
    graph.add_node("clarify", clarify)
    graph.add_node("planner", planner)
    graph.add_node("human_check", human_check)
    graph.add_node("setup_executor", setup_executor)
    graph.add_node("executor_llm", executor_llm)
    graph.add_node("tool_node", tool_node)
    graph.add_node("aggregate", aggregate)
    graph.add_node("refinery", refinery)
    graph.add_node("synthesis", synthesis)
    graph.add_node("check_citations", check_citations)
    graph.add_node("conversation_memory", conversation_memory)

    graph.add_edge(START, "security_gateway")
    graph.add_conditional_edges("security_gateway", _at_once(after_gateway))
    graph.add_conditional_edges("input_preprocessor", _at_once(after_preprocessor))
    graph.add_edge("out_of_scope", "conversation_memory")
    graph.add_conditional_edges("router", _at_once(after_router))
    graph.add_conditional_edges("retrieval", _at_once(after_retrieval))
    graph.add_conditional_edges("grade_documents", _at_once(after_grading))
    graph.add_edge("tool_executor", "router")
    graph.add_edge("clarify", "router")
    graph.add_conditional_edges("planner", _at_once(after_planner))
    graph.add_conditional_edges("human_check", _at_once(after_human_check))
    graph.add_edge("setup_executor", "executor_llm")
    graph.add_conditional_edges("executor_llm", _at_once(after_executor))
    graph.add_edge("tool_node", "executor_llm")
    graph.add_edge("aggregate", "refinery")
    graph.add_conditional_edges("refinery", _at_once(after_refinery))
    graph.add_edge("synthesis", "check_citations")
    graph.add_edge("check_citations", "conversation_memory")
    graph.add_edge("conversation_memory", END)
    return graph


def _at_once(way: Callable[[AgentState], str]) -> Callable[[AgentState], Awaitable[str]]:
    """Make a coroutine of a branch: the graph would have a thread run a plain function, which takes longer than it."""

    @wraps(way)
    async def chosen(state: AgentState) -> str:
        return way(state)

    return chosen
