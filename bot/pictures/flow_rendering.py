"""A graph as a file in the form that somebody wants: laid out to be read in a chat, and drawn in one way."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import resvg_py

from bot.markdown import to_one_line
from bot.pictures.flow import Flow, shorten
from bot.pictures.flow_svg import write_svg
from bot.pictures.layered_layout import DiagramLayout, lay_out
from bot.pictures.placed_flow import BOX_HEIGHT, GAP, Direction, PlacedFlow, measure_box, place_flow

_FONT_FILE = Path(__file__).parent / "fonts" / "DejaVuSansMono.ttf"
_FONT_NAME = "DejaVu Sans Mono"
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15">{}</text></svg>'
_NO_LETTER = "\uf8fe"


def draw_png(svg: str, zoom: float = 1.0) -> bytes:
    """Draw an SVG, which must be of citebot's own making: one may name files of the machine, and they are drawn."""
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=zoom,
        skip_system_fonts=True,
        font_files=[str(_FONT_FILE)],
        font_family=_FONT_NAME,
        monospace_family=_FONT_NAME,
    )


def spell_out(flow: Flow) -> Flow:
    """Return a graph whose words the font of PNGs can draw."""
    boxes = [replace(box, label=spell_letters(box.label), note=spell_letters(box.note)) for box in flow.boxes]
    return replace(flow, title=spell_letters(flow.title), legend=spell_letters(flow.legend), boxes=boxes)


def spell_letters(text: str) -> str:
    """Write a letter that the font lacks by plainer ones where it is made of such, else by its number: `\\u6f22`."""
    line = to_one_line(text[:1_000])
    return line if line.isascii() else "".join(map(_spell_letter, line))


@lru_cache(maxsize=4_096)
def _spell_letter(letter: str) -> str:
    if _is_drawable(letter):
        return letter
    plain = "".join(each for each in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(each))
    if plain and plain != letter and all(map(_is_drawable, plain)):
        return plain
    return letter.encode("ascii", "backslashreplace").decode()


def _is_drawable(letter: str) -> bool:
    """Whether the font has the letter: it draws the same sign for all that it lacks."""
    return letter.isprintable() and (letter.isascii() or _draw_letter(letter) != _draw_letter(_NO_LETTER))


@lru_cache(maxsize=4_096)
def _draw_letter(letter: str) -> bytes:
    return draw_png(_LETTER.format(letter))


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
