"""Draws graphs: the agent's as PNG, Mermaid or text, and calls of code in a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent import CodeSearch, Denial, build_graph
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome, to_json
from bot.cli.query import Listing
from bot.drawings.call_map import Direction, map_calls
from bot.drawings.module_map import map_modules
from bot.errors import NothingToDraw
from bot.pictures.flow import Flow, FlowBox, FlowLine
from bot.pictures.flow_rendering import FORMS, render_flow

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph

LEGEND = "--> always goes there   ..> goes to one of these"


def draw_png() -> bytes:
    """Draw the graph as a PNG."""
    graph = read_graph()
    flow = Flow(
        title="The graph that a question passes through",
        verb="leads to",
        legend="a dashed line is one of several ways to continue",
        boxes=[FlowBox(key=name, label=name) for name in graph.nodes],
        lines=[
            FlowLine(source=edge.source, target=edge.target, is_dashed=edge.conditional)
            for edge in graph.edges
            if edge.source != edge.target
        ],
    )
    return render_flow(flow, "png")


async def draw_calls(code: CodeSearch, name: str, direction: Direction, picture: Path, terminal: Terminal) -> None:
    """Draw the calls around a name to a file, in the format of its ending; nothing for an undefined name."""
    flow = await map_calls(code, name, direction)
    if flow is None:
        return
    await _write_picture(flow, picture, terminal)


async def list_modules(
    code: CodeSearch, folder: str, picture: Path | None, terminal: Terminal, *, as_json: bool
) -> CommandOutcome:
    """List the imports between the parts of a folder, and draw them in a file if one is named."""
    try:
        flow = await map_modules(code, folder)
    except NothingToDraw as error:
        if not as_json:
            raise
        no = Denial(text=str(error), coverage=await code.coverage())
        return Listing(terminal=terminal, as_json=True).report_records(code, "modules", (), no)
    if picture is not None:
        await _write_picture(flow, picture, terminal)
    if not as_json:
        return CommandOutcome(output=flow.to_text())
    names = {box.key: box.name or box.label for box in flow.boxes}
    records = [
        {"from": names[line.source], "to": names[line.target], "imports": line.weight, "certain": not line.is_dashed}
        for line in flow.lines
    ]
    return CommandOutcome(output=to_json({"title": flow.title, "modules": records}))


async def _write_picture(flow: Flow, picture: Path, terminal: Terminal) -> None:
    file = await asyncio.to_thread(render_flow, flow, FORMS[picture.suffix])
    await asyncio.to_thread(picture.write_bytes, file)
    terminal.note(f"Drawn in {picture}.")


def read_graph() -> Graph:
    """Return the nodes and edges of the graph as it runs."""
    return build_graph().compile().get_graph()


def format_mermaid() -> str:
    """Write the graph in Mermaid."""
    return read_graph().draw_mermaid()


def format_boxes() -> str:
    """Write every node as a box, in the order of the flow, above its outgoing arrows; fits 80 columns."""
    graph = read_graph()
    lines: list[str] = []
    for name in graph.nodes:
        rule = f"+{'-' * (len(name) + 2)}+"
        arrows = [edge for edge in graph.edges if edge.source == name]
        lines += [rule, f"| {name} |", rule]
        lines += [f"  |{'..>' if edge.conditional else '-->'} {edge.target}" for edge in arrows]
        lines.append("")
    return "\n".join([*lines, LEGEND])
