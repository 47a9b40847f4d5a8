"""A graph as a file in the form that somebody wants: laid out to be read in a chat, and drawn in one way."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from bot.pictures.flow import Flow, shorten
from bot.pictures.flow_svg import write_svg
from bot.pictures.layered_layout import DiagramLayout, lay_out
from bot.pictures.placed_flow import BOX_HEIGHT, GAP, Direction, PlacedFlow, measure_box, place_flow
from bot.pictures.png import draw_png, spell_out

FlowForm = Literal["svg", "png", "mermaid"]
FORMS: dict[str, FlowForm] = {".svg": "svg", ".png": "png", ".mmd": "mermaid"}  # by the ending of a file

_LEGIBLE = 760.0  # pixels: a picture that wide can be read where a chat shows it, at some 600
_SHORT = 26  # letters of a label where there is little room
_TALL = 2.4  # how much higher than wide a picture may be before it is scaled down for its height
# Columns and rows, and how wide the boxes of one layer may be together before it becomes several.
_ARRANGEMENTS: tuple[tuple[Direction, float], ...] = (
    ("rightwards", math.inf), ("downwards", math.inf), ("downwards", 640.0), ("rightwards", 800.0),
)  # fmt: skip
_ZOOM, _WIDEST, _MOST_PIXELS = 2.0, 2_000, 15_000_000  # of a PNG


def render_flow(flow: Flow, form: FlowForm) -> bytes:
    """Draw a graph, or write it as Mermaid; takes up to some seconds, so call it in a thread."""
    if form == "mermaid":
        return flow.to_mermaid().encode("utf-8", "replace")
    if form == "svg":
        return write_svg(arrange_flow(flow)).encode()
    placed = arrange_flow(spell_out(flow))
    zoom = min(_ZOOM, _WIDEST / placed.width, math.sqrt(_MOST_PIXELS / (placed.width * placed.height)))
    return draw_png(write_svg(placed), zoom)


def arrange_flow(flow: Flow) -> PlacedFlow:
    """Place a graph in the way in which it can be read best in a chat: not too wide, then small."""
    drawable = flow.make_drawable()
    found = _choose_arrangement(drawable)
    return found if found.width <= _LEGIBLE else _choose_arrangement(_compact(drawable))


def _choose_arrangement(flow: Flow) -> PlacedFlow:
    return min(
        (
            place_flow(flow, lay_out_flow(flow, direction, widest=widest), direction)
            for direction, widest in _ARRANGEMENTS
        ),
        key=lambda placed: (max(placed.width, placed.height / _TALL, _LEGIBLE), placed.width * placed.height),
    )


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


def lay_out_flow(flow: Flow, direction: Direction, *, widest: float = math.inf) -> DiagramLayout:
    """Lay a graph out; where it gathers, from its end, so that its boxes are near to that."""
    widths = {box.key: BOX_HEIGHT if direction == "rightwards" else measure_box(box) for box in flow.boxes}
    lines = [(line.source, line.target) for line in flow.lines]
    if not flow.gathers:
        return lay_out(widths, lines, gap=GAP, widest=widest)
    turned = lay_out(
        dict(reversed(widths.items())), [(target, source) for source, target in lines], gap=GAP, widest=widest
    )
    deepest = max(depth for _, depth in turned.nodes.values())
    return DiagramLayout(
        widths=widths,
        nodes={name: (along, deepest - depth) for name, (along, depth) in turned.nodes.items()},
        lines={
            (source, target): tuple((along, deepest - depth) for along, depth in reversed(points))
            for (target, source), points in turned.lines.items()
        },
    )
