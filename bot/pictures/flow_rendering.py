"""A graph as a file in the form that somebody wants: laid out by dot or by ourselves, and drawn in one way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from bot.pictures.dot_layout import lay_out_by_dot
from bot.pictures.flow import Flow, shorten
from bot.pictures.flow_png import draw_png
from bot.pictures.flow_svg import write_svg
from bot.pictures.layered_layout import DiagramLayout, lay_out
from bot.pictures.picture_text import spell_out
from bot.pictures.placed_flow import GAP, Direction, PlacedFlow, measure_along, place_flow

FlowForm = Literal["svg", "png", "mermaid"]
FORMS: dict[str, FlowForm] = {".svg": "svg", ".png": "png", ".mmd": "mermaid"}  # by the ending of a file

_LEGIBLE = 760.0  # pixels: a picture that wide can be read where a chat shows it, at some 600
_SHORT = 26  # letters of a label where there is little room
_TALL = 2.4  # how much higher than wide a picture may be before it is scaled down for its height
_ROW, _COLUMN = 640.0, 800.0  # that boxes of one layer may take where there are too many for one


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowFile:
    """A graph as the bytes of a file."""

    content: bytes
    form: FlowForm


def render_flow(flow: Flow, form: FlowForm) -> FlowFile:
    """Draw a graph, or write it as Mermaid; takes up to some seconds, so call it in a thread."""
    if form == "mermaid":
        return FlowFile(content=flow.to_mermaid().encode("utf-8", "replace"), form=form)
    if form == "png":
        return FlowFile(content=draw_png(arrange_flow(spell_out(flow))), form=form)
    return FlowFile(content=write_svg(arrange_flow(flow)).encode(), form=form)


def arrange_flow(flow: Flow) -> PlacedFlow:
    """Place a graph in the way in which it can be read best in a chat: not too wide, then small."""
    found = _choose_layout(flow)
    return found if found.width <= _LEGIBLE else _choose_layout(_compact(flow))


def _choose_layout(flow: Flow) -> PlacedFlow:
    return min((place_flow(flow, layout, direction) for direction, layout in _iter_layouts(flow)), key=_judge)


def _compact(flow: Flow) -> Flow:
    """Shorten labels, and leave files without their folders."""
    boxes = [
        replace(
            box,
            label=shorten(box.label, _SHORT),
            note=shorten(box.note.rpartition("/")[2], _SHORT) if box.note else "",
            name=box.name or f"{box.label} {box.note}",
        )
        for box in flow.boxes
    ]
    return replace(flow, boxes=boxes)


def _judge(placed: PlacedFlow) -> tuple[float, float]:
    return max(placed.width, placed.height / _TALL, _LEGIBLE), placed.width * placed.height


def _iter_layouts(flow: Flow) -> Iterator[tuple[Direction, DiagramLayout]]:
    """Yield layouts in columns and in rows, by dot where there is one, else by ourselves; and in more rows."""
    lines = [(line.source, line.target) for line in flow.lines_to_draw]
    across: tuple[Direction, Direction] = ("rightwards", "downwards")
    for direction in across:
        found = lay_out_by_dot(measure_along(flow, direction), lines, gap=GAP) if lines else None
        yield direction, found or lay_out_alone(flow, direction)
    yield "downwards", lay_out_alone(flow, "downwards", widest=_ROW)
    yield "rightwards", lay_out_alone(flow, "rightwards", widest=_COLUMN)


def lay_out_alone(flow: Flow, direction: Direction, *, widest: float = float("inf")) -> DiagramLayout:
    """Lay a graph out without dot; where it gathers, from its end, so that its boxes are near to that."""
    widths = measure_along(flow, direction)
    lines = [(line.source, line.target) for line in flow.lines_to_draw]
    if not flow.gathers:
        return lay_out(widths, lines, gap=GAP, widest=widest)
    turned = lay_out(
        dict(reversed(widths.items())), [(target, source) for source, target in lines], gap=GAP, widest=widest
    )
    deepest = max(depth for _, depth in turned.nodes.values())
    return DiagramLayout(
        nodes={name: (along, deepest - depth) for name, (along, depth) in turned.nodes.items()},
        lines={
            (source, target): tuple((along, deepest - depth) for along, depth in reversed(points))
            for (target, source), points in turned.lines.items()
        },
    )
