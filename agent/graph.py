"""The graph: nodes and edges, nothing else."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from agent.nodes.check_citations import check_citations
from agent.nodes.conversation_memory import conversation_memory
from agent.nodes.grade_documents import grade_documents
from agent.nodes.input_preprocessor import input_preprocessor
from agent.nodes.out_of_scope import out_of_scope
from agent.nodes.retrieval import retrieval
from agent.nodes.router import router
from agent.nodes.security_gateway import security_gateway
from agent.nodes.synthesis import synthesis
from agent.ports import Deps
from agent.routing import after_gateway, after_preprocessor, after_retrieval, after_router
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
    graph.add_node("synthesis", synthesis)
    graph.add_node("check_citations", check_citations)
    graph.add_node("conversation_memory", conversation_memory)

    graph.add_edge(START, "security_gateway")
    graph.add_conditional_edges("security_gateway", after_gateway)
    graph.add_conditional_edges("input_preprocessor", after_preprocessor)
    graph.add_edge("out_of_scope", "conversation_memory")
    graph.add_conditional_edges("router", after_router)
    graph.add_conditional_edges("retrieval", after_retrieval)
    graph.add_edge("grade_documents", "synthesis")
    graph.add_edge("synthesis", "check_citations")
    graph.add_edge("check_citations", "conversation_memory")
    graph.add_edge("conversation_memory", END)
    return graph
