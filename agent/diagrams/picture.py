"""The graph as a PNG, drawn on this machine."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from PIL import Image, ImageDraw, ImageFont

from agent.diagrams.layout import Point, lay_out
from agent.diagrams.text import read_graph

SCALE = 2  # drawn larger and made smaller, because Pillow's lines are jagged
FONT_SIZE = 18
MARGIN = 60
BOX_HEIGHT = 40.0
PADDING = 16.0
DASH = 7.0
ARROW = 11.0
INK, FILL, PAPER = "#3b3b58", "#f2f0ff", "#ffffff"


def draw_png() -> bytes:
    """Draw the graph; a dashed line is one of several ways to go on."""
    graph = read_graph()
    font = ImageFont.load_default(FONT_SIZE * SCALE)
    widths = {name: font.getlength(name) / SCALE + 2 * PADDING for name in graph.nodes}
    layout = lay_out(widths, [(edge.source, edge.target) for edge in graph.edges])
    sheet = _Sheet([*layout.nodes.values(), *(point for line in layout.lines.values() for point in line)], widths)
    for edge in graph.edges:
        target = layout.nodes[edge.target]
        sheet.arrow(layout.lines[edge.source, edge.target], target, dashed=edge.conditional)
    for name, middle in layout.nodes.items():
        sheet.box(name, middle, widths[name], font)
    return sheet.png()


class _Sheet:
    """A drawing in the units of the layout."""

    def __init__(self, points: Sequence[Point], widths: dict[str, float]) -> None:
        aside = MARGIN + max(widths.values()) / 2
        self._left = min(x for x, _ in points) - aside
        self._top = -MARGIN
        size = (max(x for x, _ in points) + aside - self._left, max(y for _, y in points) + 2 * MARGIN)
        self._image = Image.new("RGB", (round(size[0] * SCALE), round(size[1] * SCALE)), PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def box(self, label: str, middle: Point, width: float, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> None:
        """Draw a node."""
        x, y = middle
        corners = [
            self._at((x - width / 2, y - BOX_HEIGHT / 2)),
            self._at((x + width / 2, y + BOX_HEIGHT / 2)),
        ]
        self._draw.rounded_rectangle(corners, radius=8 * SCALE, fill=FILL, outline=INK, width=SCALE)
        self._draw.text(self._at(middle), label, fill=INK, font=font, anchor="mm")

    def arrow(self, points: Sequence[Point], target: Point, *, dashed: bool) -> None:
        """Draw a line that ends at the rim of its target's box, coming from above or from below."""
        *before, last = points
        rim = (last[0], target[1] + math.copysign(BOX_HEIGHT / 2, before[-1][1] - target[1]))
        for start, end in pairwise([*before, rim]):
            for piece in _dashes(start, end) if dashed else [(start, end)]:
                self._draw.line([self._at(point) for point in piece], fill=INK, width=SCALE)
        self._head(before[-1], rim)

    def _head(self, start: Point, tip: Point) -> None:
        angle = math.atan2(start[1] - tip[1], start[0] - tip[0])
        sides = [
            (tip[0] + ARROW * math.cos(angle + turn), tip[1] + ARROW * math.sin(angle + turn)) for turn in (-0.4, 0.4)
        ]
        self._draw.polygon([self._at(point) for point in (tip, *sides)], fill=INK)

    def png(self) -> bytes:
        """Return the drawing as the bytes of a file."""
        file = io.BytesIO()
        size = (self._image.width // SCALE, self._image.height // SCALE)
        self._image.resize(size, Image.Resampling.LANCZOS).save(file, "PNG", optimize=True)
        return file.getvalue()

    def _at(self, point: Point) -> tuple[float, float]:
        return (point[0] - self._left) * SCALE, (point[1] - self._top) * SCALE


def _dashes(start: Point, end: Point) -> Iterator[tuple[Point, Point]]:
    count = max(1, round(math.dist(start, end) / DASH))
    steps = [
        (start[0] + (end[0] - start[0]) * step / count, start[1] + (end[1] - start[1]) * step / count)
        for step in range(count + 1)
    ]
    yield from list(pairwise(steps))[::2]
