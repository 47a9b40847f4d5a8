"""A graph as a file in the form that somebody wants: laid out by dot or by ourselves, and drawn in one way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.pictures.dot_layout import lay_out_by_dot
from bot.pictures.flow import Flow
from bot.pictures.flow_png import draw_png
from bot.pictures.flow_svg import write_svg
from bot.pictures.layered_layout import DiagramLayout, Line, lay_out
from bot.pictures.placed_flow import BOX_HEIGHT, GAP, measure_column, place_flow

FlowForm = Literal["svg", "png", "mermaid"]
FORMS: dict[str, FlowForm] = {".svg": "svg", ".png": "png", ".mmd": "mermaid"}  # by the ending of a file


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowFile:
    """A graph as the bytes of a file."""

    content: bytes
    form: FlowForm


def render_flow(flow: Flow, form: FlowForm) -> FlowFile:
    """Draw a graph, or write it as Mermaid; takes up to some seconds, so call it in a thread."""
    if form == "mermaid":
        return FlowFile(content=flow.to_mermaid().encode(), form=form)
    placed = place_flow(flow, lay_out_flow(flow))
    return FlowFile(content=write_svg(placed).encode() if form == "svg" else draw_png(placed), form=form)


def lay_out_flow(flow: Flow) -> DiagramLayout:
    """Lay a graph out by dot where there is one, else by ourselves."""
    names = [box.key for box in flow.boxes]
    lines = [(line.source, line.target) for line in flow.lines]
    width = measure_column(flow.boxes)
    found = lay_out_by_dot(names, lines, along=BOX_HEIGHT, across=width, gap=GAP) if lines else None
    return found or lay_out_alone(names, lines, gathers=flow.gathers)


def lay_out_alone(names: Sequence[str], lines: Sequence[Line], *, gathers: bool) -> DiagramLayout:
    """Lay a graph out without dot; where it gathers, from its end, so that its boxes are near to that."""
    if not gathers:
        return lay_out(dict.fromkeys(names, BOX_HEIGHT), lines, gap=GAP)
    turned = lay_out(
        dict.fromkeys(reversed(names), BOX_HEIGHT), [(target, source) for source, target in lines], gap=GAP
    )
    deepest = max(depth for _, depth in turned.nodes.values())
    return DiagramLayout(
        nodes={name: (along, deepest - depth) for name, (along, depth) in turned.nodes.items()},
        lines={
            (source, target): tuple((along, deepest - depth) for along, depth in reversed(points))
            for (target, source), points in turned.lines.items()
        },
    )
