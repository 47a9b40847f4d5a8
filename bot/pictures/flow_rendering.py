"""Renders a placed flow as SVG, PNG, Mermaid or text."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import resvg_py

from bot.markdown import to_one_line
from bot.pictures.flow import Flow, shorten
from bot.pictures.layered_layout import DiagramLayout, Point, lay_out
from bot.pictures.placed_flow import (
    BOX_HEIGHT,
    GAP,
    LEGEND_LINE,
    MARGIN,
    NOTE_CHARACTER,
    TITLE_LINE,
    Curve,
    Direction,
    PlacedBox,
    PlacedFlow,
    PlacedLine,
    count_cells,
    measure_box,
    place_flow,
)

_FONT_FILE = Path(__file__).parent / "fonts" / "DejaVuSansMono.ttf"
_FONT_NAME = "DejaVu Sans Mono"
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15">{}</text></svg>'
_NO_LETTER = "\uf8fe"
_LINE_WIDTH, _MAX_WIDTH = 1.3, 4.0
_NUMBER_HEIGHT, _AIR = 13.0, 3.0  # for the number of a line, with its margin
_TAPER = 12.0  # of both sides of a choice
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)  # of a curve: where a number may stand, the best first
# Characters that XML forbids, besides control characters, which a line of text has not.
_FORBIDDEN = {0xFFFE: "\N{REPLACEMENT CHARACTER}", 0xFFFF: "\N{REPLACEMENT CHARACTER}"} | dict.fromkeys(
    range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"
)
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#24243e;text-anchor:middle}"
    ".title{font-size:15px;text-anchor:start}.legend{font-size:10px;fill:#5c5c7a;text-anchor:start}"
    ".note,.number{font-size:10px;fill:#5c5c7a}.number{paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".paper{fill:#fff}.node rect{fill:#f2f0ff;stroke:#6a6a94}.folder rect{fill:#dcd8fb;stroke:#3b3b58}"
    ".main rect,.now rect{fill:#3b3b58;stroke:#3b3b58}.main text,.now text{fill:#fff}"
    ".outside rect,.folded rect{fill:#fff;stroke:#8a8aa5}.folded rect{stroke-dasharray:4 3}"
    ".line{stroke-width:1.3}.line path{fill:none;stroke:#8a8aa5}.dashed path{stroke-dasharray:5 4}"
    ".line .tip{fill:#8a8aa5;stroke:none}"
    "@media(prefers-color-scheme:dark){text{fill:#ecebf7}.legend,.note,.number{fill:#b4b3cb}.number{stroke:#1c1c28}"
    ".paper,.outside rect,.folded rect{fill:#1c1c28}.node rect{fill:#2b2a40;stroke:#8c8ab8}"
    ".folder rect{fill:#3d3a63;stroke:#a9a6dd}.main rect,.now rect{fill:#c9c5ff;stroke:#c9c5ff}"
    ".main text,.now text{fill:#1c1c28}.outside rect,.folded rect{fill:#1c1c28;stroke:#7d7c9a}"
    ".line path{stroke:#8f8eab}.line .tip{fill:#8f8eab}}"
)


def draw_png(svg: str, zoom: float = 1.0) -> bytes:
    """Draw an SVG, which citebot itself must have made: an SVG may name local files, which would be drawn."""
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=zoom,
        skip_system_fonts=True,
        font_files=[str(_FONT_FILE)],
        font_family=_FONT_NAME,
        monospace_family=_FONT_NAME,
    )


def spell_out(flow: Flow) -> Flow:
    """Return a graph with only words that the PNG font can draw."""
    boxes = [replace(box, label=spell_letters(box.label), note=spell_letters(box.note)) for box in flow.boxes]
    return replace(flow, title=spell_letters(flow.title), legend=spell_letters(flow.legend), boxes=boxes)


def spell_letters(text: str) -> str:
    r"""Replace a letter that the font lacks by its plain parts, else by its number: `\u6f22`."""
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
    """Whether the font has the letter: all missing ones look the same."""
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


_ZOOM, _WIDEST, _MAX_PIXELS = 2.0, 2_000, 15_000_000  # of a PNG


def render_flow(flow: Flow, form: FlowForm) -> bytes:
    """Draw a graph, or write it as Mermaid; this takes up to some seconds, so call it in a thread."""
    if form == "mermaid":
        return flow.to_mermaid().encode("utf-8", "replace")
    if form == "svg":
        return write_svg(arrange_flow(flow)).encode()
    placed = arrange_flow(spell_out(flow))
    zoom = min(_ZOOM, _WIDEST / placed.width, math.sqrt(_MAX_PIXELS / (placed.width * placed.height)))
    return draw_png(write_svg(placed), zoom)


def arrange_flow(flow: Flow) -> PlacedFlow:
    """Place a graph for a chat: not too wide, then small."""
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
    """Shorten labels, and drop the folders of files."""
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
    """Lay out a graph; if it converges, start from its end so that boxes are close to it."""
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


def write_svg(flow: PlacedFlow) -> str:
    """Return the text of a file."""
    size = f'width="{flow.width:.0f}" height="{flow.height:.0f}" viewBox="0 0 {flow.width:.0f} {flow.height:.0f}"'
    title = _clean(flow.title, 300)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>'
    paper = '<rect class="paper" width="100%" height="100%"/>'
    parts = [head, f"<title>{escape(title)}</title><style>{_STYLE}</style>", paper, *_write_head(flow)]
    return "\n".join([*parts, *_draw_all(flow), "</svg>\n"])


def write_svg_part(flow: PlacedFlow) -> str:
    """Return an element that a page can hold; how its classes look, in light and dark, is for the page to say."""
    size = f'viewBox="0 0 {flow.width:.0f} {flow.height:.0f}" width="{flow.width:.0f}"'
    title = quoteattr(_clean(flow.title, 1_000))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" {size} aria-label={title}>'
    return f"{head}{''.join(_draw_all(flow))}</svg>"


def _write_head(flow: PlacedFlow) -> Iterator[str]:
    y = MARGIN / 2
    for line in flow.title_lines:
        y += TITLE_LINE
        yield f'<text class="title" x="{MARGIN:.0f}" y="{y - 4:.1f}">{escape(_clean(line))}</text>'
    for line in flow.legend_lines:
        y += LEGEND_LINE
        yield f'<text class="legend" x="{MARGIN:.0f}" y="{y - 3:.1f}">{escape(_clean(line))}</text>'


def _draw_all(flow: PlacedFlow) -> Iterator[str]:
    """Draw lines below boxes, and the way that is taken over the other lines."""
    yield f'<g transform="translate({flow.aside:.0f} {flow.down:.0f})">'
    for line in sorted(flow.lines, key=lambda placed: placed.line.is_taken):
        yield _draw_line(line)
    for line, (x, y) in place_numbers(flow):
        yield f'<text class="number" x="{x:.1f}" y="{y + 3.5:.1f}">{escape(_clean(line.line.words))}</text>'
    for box in flow.boxes:
        yield _draw_box(box)
    yield "</g>"


def place_numbers(flow: PlacedFlow) -> Iterator[tuple[PlacedLine, Point]]:
    """Yield the lines whose number has room between the boxes, with its middle; the others have none."""
    taken = [(box.x, box.y, box.x + box.width, box.y + BOX_HEIGHT) for box in flow.boxes]
    for line in sorted(flow.lines, key=lambda placed: -placed.line.weight):
        half = count_cells(line.line.words) * NOTE_CHARACTER / 2 + _AIR
        for x, y in (_follow(curve, at) for at in _ALONG for curve in line.curves[::2] if line.line.words):
            left, top, right, bottom = x - half, y - _NUMBER_HEIGHT / 2, x + half, y + _NUMBER_HEIGHT / 2
            if not any(left < each[2] and each[0] < right and top < each[3] and each[1] < bottom for each in taken):
                taken.append((left, top, right, bottom))
                yield line, (x, y)
                break


def _follow(curve: Curve, t: float) -> Point:
    """Return the point of a curve at a part of its way."""
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return (
        sum(weight * x for weight, (x, _) in zip(weights, curve, strict=True)),
        sum(weight * y for weight, (_, y) in zip(weights, curve, strict=True)),
    )


def _draw_line(placed: PlacedLine) -> str:
    start = placed.curves[0][0]
    path = f"M{start[0]:.0f} {start[1]:.0f}" + "".join(
        f"C{near[0]:.0f} {near[1]:.0f} {far[0]:.0f} {far[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
        for _, near, far, end in placed.curves
    )
    tip = f"M{'L'.join(f'{x:.0f} {y:.0f}' for x, y in placed.tip)}z"
    names = f"line{' dashed' * placed.line.is_dashed}{' taken' * placed.line.is_taken}"
    width = min(_MAX_WIDTH, _LINE_WIDTH + 0.45 * math.log2(max(1, placed.line.weight)))
    thick = f' stroke-width="{width:.1f}"' if placed.line.weight > 1 else ""
    if not placed.line.has_tip:
        return f'<g class="{names}"><path d="{path}L{placed.tip[0][0]:.0f} {placed.tip[0][1]:.0f}"/></g>'
    return f'<g class="{names}"><path d="{path}"{thick}/><path class="tip" d="{tip}"/></g>'


def _draw_box(placed: PlacedBox) -> str:
    box, middle = placed.box, placed.x + placed.width / 2
    rows = [("label", shorten(box.label)), *([("note", shorten(box.note))] if box.note else [])]
    first = placed.y + BOX_HEIGHT / 2 + 4 - 6.5 * (len(rows) - 1)
    texts = "".join(
        f'<text class="{name}" x="{middle:g}" y="{first + 14 * number:g}">{escape(_clean(row))}</text>'
        for number, (name, row) in enumerate(rows)
    )
    hint = f"<title>{escape(_clean(box.hint or f'{box.name or box.label} {box.note}', 500))}</title>"
    drawn = f'<g class="node {box.look}">{hint}{_draw_outline(placed)}{texts}</g>'
    return (
        f"<a href={quoteattr(_clean(box.link, 2_000))}>{drawn}</a>"
        if box.link.startswith(("https://", "http://"))
        else drawn
    )


def _draw_outline(placed: PlacedBox) -> str:
    left, top, right, bottom = placed.x, placed.y, placed.x + placed.width, placed.y + BOX_HEIGHT
    if placed.box.shape == "choice":
        middle, inner, outer = (top + bottom) / 2, left + _TAPER, right - _TAPER
        corners = ((left, middle), (inner, top), (outer, top), (right, middle), (outer, bottom), (inner, bottom))
        return f'<polygon points="{" ".join(f"{x:.0f},{y:.0f}" for x, y in corners)}"/>'
    radius = BOX_HEIGHT / 2 if placed.box.shape == "round" else 6
    size = f'width="{placed.width:.0f}" height="{BOX_HEIGHT:.0f}"'
    return f'<rect x="{left:.0f}" y="{top:.0f}" {size} rx="{radius:.0f}"/>'


def _clean(text: str, longest: int = 200) -> str:
    return shorten(text, longest).translate(_FORBIDDEN)
