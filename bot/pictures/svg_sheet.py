"""A sheet that boxes and arrows are drawn on in the units of a layout, and that becomes an SVG.

It sets no colours: what shows it has a style for its classes, and so for light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from bot.markdown import replace_control_characters
from bot.pictures.layered_layout import DiagramLayout, Point

BOX_HEIGHT = 34.0
MARGIN = 8.0
ASIDE = 9.0  # by how much a line that runs upwards keeps away from the one that runs down beside it
ARROW = 6.0
CHARACTER = 7.1  # the width of one, in the 12 pixels that monospace labels are written in
PADDING = 10.0


def measure_label(label: str) -> float:
    """Return how wide the box around a label is."""
    return len(label) * CHARACTER + 2 * PADDING


class SvgSheet:
    """A drawing of a layout; `rise` makes its layers lower than the layout has them."""

    def __init__(self, layout: DiagramLayout, widths: Mapping[str, float], *, rise: float = 1.0) -> None:
        self._rise = rise
        aside = max(widths.values()) / 2 + MARGIN
        points = [*layout.nodes.values(), *(point for line in layout.lines.values() for point in line)]
        self._left, self._top = min(x for x, _ in points) - aside, -BOX_HEIGHT / 2 - MARGIN
        self._width = max(x for x, _ in points) + aside - self._left
        self._height = max(y for _, y in points) * rise + BOX_HEIGHT / 2 + MARGIN - self._top
        self._parts: list[str] = []

    def box(
        self, label: str, middle: Point, width: float, *, note: str = "", look: str = "", hint: str = "", link: str = ""
    ) -> None:
        """Draw a node, with a note below its label; `look` are its classes, `hint` is told to whoever points at it."""
        x, y = self._to_pixels(middle)
        rows = [(label, "label")] if not note else [(label, "label"), (note, "note")]
        first = y + 4 - (len(rows) - 1) * 6.5
        text = "".join(
            f'<text class="{name}" x="{x:.1f}" y="{first + number * 13:.1f}">{_escape(row)}</text>'
            for number, (row, name) in enumerate(rows)
        )
        shape = (
            f'<rect x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{width:.1f}" height="{BOX_HEIGHT:.0f}"'
            ' rx="6"/>'
        )
        title = f"<title>{_escape(hint)}</title>" if hint else ""
        drawn = f'<g class="node {look}">{title}{shape}{text}</g>'
        self._parts.append(f"<a href={_quote(link)}>{drawn}</a>" if link else drawn)

    def arrow(self, points: Sequence[Point], target: Point, *, dashed: bool = False, look: str = "") -> None:
        """Draw a line that ends at the rim of its target's box, coming from above or from below."""
        is_rising = points[-1][1] < points[0][1]
        places = [self._to_pixels((x + (ASIDE if is_rising else 0.0), y)) for x, y in points]
        rim = (places[-1][0], self._to_pixels(target)[1] + math.copysign(BOX_HEIGHT / 2, 1.0 if is_rising else -1.0))
        end = (rim[0], rim[1] + math.copysign(ARROW, 1.0 if is_rising else -1.0))
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(
            f"C{x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {to_y:.1f}"
            for (x, y), (to_x, to_y) in pairwise([*places[:-1], end])
        )
        tip = f"M{rim[0]:.1f} {rim[1]:.1f}L{end[0] - 3.5:.1f} {end[1]:.1f}H{end[0] + 3.5:.1f}Z"
        names = " ".join(filter(None, ("line", "dashed" if dashed else "", look)))
        self._parts.append(f'<g class="{names}"><path d="{path}"/><path class="tip" d="{tip}"/></g>')

    def svg(self, title: str) -> str:
        """Return the drawing as an element that a page can hold; its parts are in the order of drawing."""
        size = f'viewBox="0 0 {self._width:.0f} {self._height:.0f}" width="{self._width:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" {size} aria-label={_quote(title)}>'
        return f"{head}{''.join(self._parts)}</svg>"

    def _to_pixels(self, point: Point) -> Point:
        return point[0] - self._left, point[1] * self._rise - self._top


def _escape(text: str) -> str:
    return escape(_clean(text))


def _quote(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Leave out what no XML may hold."""
    return replace_control_characters(text).translate(dict.fromkeys((0xFFFE, 0xFFFF), "\N{REPLACEMENT CHARACTER}"))
