"""Writes a placed graph as an SVG, of which whatever names hold is text; as a file, its colours are in it."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from bot.pictures.flow import shorten
from bot.pictures.placed_flow import BOX_HEIGHT, TIP, PlacedBox, PlacedFlow, PlacedLine

# What no XML may hold, beside the control characters that one line of text has none of.
_FORBIDDEN = {0xFFFE: "\N{REPLACEMENT CHARACTER}", 0xFFFF: "\N{REPLACEMENT CHARACTER}"} | dict.fromkeys(
    range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"
)
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#24243e;text-anchor:middle}"
    ".note{font-size:10px;fill:#5c5c7a}.node rect{fill:#f2f0ff;stroke:#3b3b58}"
    ".main rect,.now rect{fill:#3b3b58}.main text,.now text{fill:#fff}"
    ".folded rect{fill:#fff;stroke:#8a8aa5;stroke-dasharray:4 3}"
    ".line path{fill:none;stroke:#8a8aa5;stroke-width:1.3}.dashed path{stroke-dasharray:5 4}"
    ".line .tip{fill:#8a8aa5;stroke:none}"
)


def write_svg(flow: PlacedFlow) -> str:
    """Return the text of a file."""
    size = f'width="{flow.width:.0f}" height="{flow.height:.0f}" viewBox="0 0 {flow.width:.0f} {flow.height:.0f}"'
    title = _clean(flow.title, 300)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    parts = [head, f"<title>{escape(title)}</title><style>{_STYLE}</style>", paper, *_draw_all(flow), "</svg>\n"]
    return "\n".join(parts)


def write_svg_part(flow: PlacedFlow) -> str:
    """Return an element that a page can hold; how its classes look, in light and dark, is for the page to say."""
    size = f'viewBox="0 0 {flow.width:.0f} {flow.height:.0f}" width="{flow.width:.0f}"'
    title = quoteattr(_clean(flow.title, 1_000))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" {size} aria-label={title}>'
    return f"{head}{''.join(_draw_all(flow))}</svg>"


def _draw_all(flow: PlacedFlow) -> Iterator[str]:
    """Draw lines below boxes, and the way that is taken over the other lines."""
    for line in sorted(flow.lines, key=lambda placed: placed.line.is_taken):
        yield _draw_line(line)
    for box in flow.boxes:
        yield _draw_box(box)


def _draw_line(placed: PlacedLine) -> str:
    start = placed.curves[0][0]
    path = f"M{start[0]:.0f} {start[1]:.0f}" + "".join(
        f"C{near[0]:.0f} {near[1]:.0f} {far[0]:.0f} {far[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
        for _, near, far, end in placed.curves
    )
    (x, y), (from_x, from_y) = placed.tip, placed.curves[-1][3]
    back_x, back_y = from_x - x, from_y - y  # one of them is 0: a tip points along the columns or the rows
    across = f"v{TIP:.0f}" if back_x else f"h{TIP:.0f}"
    corner = f"l{back_x:.0f} {-TIP / 2:.0f}" if back_x else f"l{-TIP / 2:.0f} {back_y:.0f}"
    names = f"line{' dashed' * placed.line.is_dashed}{' taken' * placed.line.is_taken}"
    tip = f"M{x:.0f} {y:.0f}{corner}{across}z"
    return f'<g class="{names}"><path d="{path}"/><path class="tip" d="{tip}"/></g>'


def _draw_box(placed: PlacedBox) -> str:
    box, middle = placed.box, placed.x + placed.width / 2
    rows = [("label", shorten(box.label)), *([("note", shorten(box.note))] if box.note else [])]
    first = placed.y + BOX_HEIGHT / 2 + 4 - 6.5 * (len(rows) - 1)
    texts = "".join(
        f'<text class="{name}" x="{middle:g}" y="{first + 14 * number:g}">{escape(_clean(row))}</text>'
        for number, (name, row) in enumerate(rows)
    )
    place = f'x="{placed.x:.0f}" y="{placed.y:.0f}" width="{placed.width:.0f}" height="{BOX_HEIGHT:.0f}"'
    hint = f"<title>{escape(_clean(box.hint or f'{box.label} {box.note}', 500))}</title>"
    drawn = f'<g class="node {box.look}">{hint}<rect {place} rx="6"/>{texts}</g>'
    return (
        f"<a href={quoteattr(_clean(box.link, 2_000))}>{drawn}</a>"
        if box.link.startswith(("https://", "http://"))
        else drawn
    )


def _clean(text: str, longest: int = 200) -> str:
    return shorten(text, longest).translate(_FORBIDDEN)
