"""The graph as text: Mermaid for documents, boxes and arrows for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.graph import build_graph

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Edge, Graph

LEGEND = "--> always goes there   ..> goes to one of these"


def read_graph() -> Graph:
    """Return the nodes and edges of the graph as it runs."""
    return build_graph().compile().get_graph()


def format_mermaid() -> str:
    """Write the graph in Mermaid."""
    return read_graph().draw_mermaid()


def format_boxes() -> str:
    """Write every node as a box, in the order of the flow, above the arrows that leave it; fits 80 columns."""
    graph = read_graph()
    drawn = [line for name in graph.nodes for line in _box(name, [edge for edge in graph.edges if edge.source == name])]
    return "\n".join([*drawn, LEGEND])


def _box(name: str, edges: list[Edge]) -> Iterator[str]:
    rule = f"+{'-' * (len(name) + 2)}+"
    yield from (rule, f"| {name} |", rule)
    for edge in edges:
        yield f"  |{'..>' if edge.conditional else '-->'} {edge.target}"
    yield ""
