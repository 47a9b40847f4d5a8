"""Draws graphs: that of the agent as a PNG, as Mermaid or as text, and in a file who calls what in the code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent import CodeSearch, build_graph
from bot.adapters.terminal.display import Terminal
from bot.pictures.flow import Flow, FlowBox, FlowLine
from bot.pictures.flow_rendering import FORMS, render_flow
from bot.repositories.call_map import Direction, map_calls

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph

LEGEND = "--> always goes there   ..> goes to one of these"


def draw_png() -> bytes:
    """Draw the graph; a dashed line is one of several ways to go on."""
    graph = read_graph()
    flow = Flow(
        title="The graph that a question passes through",
        verb="leads to",
        boxes=[FlowBox(key=name, label=name) for name in graph.nodes],
        lines=[
            FlowLine(source=edge.source, target=edge.target, is_dashed=edge.conditional)
            for edge in graph.edges
            if edge.source != edge.target
        ],
    )
    return render_flow(flow, "png").content


async def draw_calls(code: CodeSearch, name: str, direction: Direction, picture: Path, terminal: Terminal) -> None:
    """Draw the calls around a name in a file, in the form that its ending names; nothing where it is not defined."""
    flow = await map_calls(code, name, direction)
    if flow is None:
        return
    file = await asyncio.to_thread(render_flow, flow, FORMS[picture.suffix])
    await asyncio.to_thread(picture.write_bytes, file.content)
    terminal.note(f"Drawn in {picture}.")


def read_graph() -> Graph:
    """Return the nodes and edges of the graph as it runs."""
    return build_graph().compile().get_graph()


def format_mermaid() -> str:
    """Write the graph in Mermaid."""
    return read_graph().draw_mermaid()


def format_boxes() -> str:
    """Write every node as a box, in the order of the flow, above the arrows that leave it; fits 80 columns."""
    graph = read_graph()
    lines: list[str] = []
    for name in graph.nodes:
        rule = f"+{'-' * (len(name) + 2)}+"
        arrows = [edge for edge in graph.edges if edge.source == name]
        lines += [rule, f"| {name} |", rule]
        lines += [f"  |{'..>' if edge.conditional else '-->'} {edge.target}" for edge in arrows]
        lines.append("")
    return "\n".join([*lines, LEGEND])
