"""Writes a placed graph as an SVG that stands for itself: its colours are in it, and whatever names hold is text."""

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
    ".note{font-size:10px;fill:#5c5c7a}.box{fill:#f2f0ff;stroke:#3b3b58}.main{fill:#3b3b58;stroke:#3b3b58}"
    ".main~text{fill:#fff}.folded{fill:#fff;stroke:#8a8aa5;stroke-dasharray:4 3}"
    ".line{fill:none;stroke:#8a8aa5;stroke-width:1.3}.dashed{stroke-dasharray:5 4}.tip{fill:#8a8aa5}"
)


def write_svg(flow: PlacedFlow) -> str:
    """Return the text of the file."""
    size = f'width="{flow.width:.0f}" height="{flow.height:.0f}" viewBox="0 0 {flow.width:.0f} {flow.height:.0f}"'
    title = _clean(flow.title, 300)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    parts = [head, f"<title>{escape(title)}</title><style>{_STYLE}</style>", paper]
    parts += [part for line in flow.lines for part in _draw_line(line)]
    parts += [_draw_box(box) for box in flow.boxes]
    return "\n".join([*parts, "</svg>\n"])


def _draw_line(placed: PlacedLine) -> Iterator[str]:
    start = placed.curves[0][0]
    path = f"M{start[0]:.1f} {start[1]:.1f}" + "".join(
        f"C{near[0]:.1f} {near[1]:.1f} {far[0]:.1f} {far[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
        for _, near, far, end in placed.curves
    )
    yield f'<path class="line{" dashed" * placed.line.is_dashed}" d="{path}"/>'
    (x, y), back = placed.tip, placed.curves[-1][3][0] - placed.tip[0]
    yield f'<path class="tip" d="M{x:.1f} {y:.1f}l{back:.1f} {-TIP / 2:.1f}v{TIP:.1f}z"/>'


def _draw_box(placed: PlacedBox) -> str:
    box, middle = placed.box, placed.x + placed.width / 2
    rows = [("label", shorten(box.label)), *([("note", shorten(box.note))] if box.note else [])]
    first = placed.y + BOX_HEIGHT / 2 + 4 - 6.5 * (len(rows) - 1)
    texts = "".join(
        f'<text class="{name}" x="{middle:.1f}" y="{first + 14 * number:.1f}">{escape(_clean(row))}</text>'
        for number, (name, row) in enumerate(rows)
    )
    look = "box" if box.look == "plain" else box.look
    place = f'x="{placed.x:.1f}" y="{placed.y:.1f}" width="{placed.width:.1f}" height="{BOX_HEIGHT:.0f}"'
    hint = f"<title>{escape(_clean(f'{box.label} {box.note}', 500))}</title>"
    drawn = f'<g>{hint}<rect class="{look}" {place} rx="6"/>{texts}</g>'
    return (
        f"<a href={quoteattr(_clean(box.link, 2_000))}>{drawn}</a>"
        if box.link.startswith(("https://", "http://"))
        else drawn
    )


def _clean(text: str, longest: int = 200) -> str:
    return shorten(text, longest).translate(_FORBIDDEN)
