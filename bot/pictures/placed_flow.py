"""Places the boxes and lines of a graph on a sheet: layers as columns or rows, lines in the gaps between them."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bot.pictures.flow import Flow, FlowBox, FlowLine, shorten
from bot.pictures.layered_layout import LAYER_HEIGHT, DiagramLayout, Point

BOX_HEIGHT = 40.0
GAP = 14.0  # between two boxes of a layer
MARGIN = 16.0
CHARACTER, NOTE_CHARACTER = 7.25, 6.05  # the widths of one, in the 12 and 10 pixels that they are written in
TITLE_CHARACTER, TITLE_LINE, LEGEND_LINE = 9.05, 20.0, 14.0  # of the title, in 15 pixels, and of the legend, in 10
_PADDING = 12.0
_TIP = 8.0
_MIN_WIDTH, _MIN_SHEET = 90.0, 420.0
_GUTTERS = {"rightwards": (48.0, 80.0), "downwards": (44.0, 84.0)}  # between two layers, with few and with many lines
_CROWD = 2.0  # by how much a line widens its gutter
_DENSE = 0.45  # the part of a gutter that remains next to text
_BULGE = 60.0  # by how much a line within a layer leaves it
_PORT, _PORTS = 9.0, 0.6  # how far apart lines end at a box, and the part of its side that they end at

Curve = tuple[Point, Point, Point, Point]  # of Bezier: its beginning, two points that it leans to, its end
Direction = Literal["rightwards", "downwards"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedBox:
    """A box with the place of its upper left corner."""

    box: FlowBox
    x: float
    y: float
    width: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedLine:
    """A line as curves, the last of which ends where its tip begins; the tip's first corner is its point."""

    line: FlowLine
    curves: Sequence[Curve]
    tip: tuple[Point, Point, Point]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedFlow:
    """A graph on a sheet of a width and a height, both in pixels, below the lines of its title and its legend.

    Boxes and lines have their places on the drawing, whose upper left corner is `aside` and `down` on the sheet.
    """

    title: str
    title_lines: Sequence[str]
    legend_lines: Sequence[str]
    width: float
    height: float
    aside: float
    down: float
    boxes: Sequence[PlacedBox]
    lines: Sequence[PlacedLine]


def count_cells(text: str) -> int:
    """Return the width of a text in cells of a monospace font."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap_words(text: str, cells: int) -> list[str]:
    """Wrap the first 1,000 characters of a text into lines of so many cells, between words if possible."""
    lines = [""]
    for word in text[:1_000].split():
        rest = word
        if lines[-1] and count_cells(lines[-1]) + 1 + count_cells(rest) > cells:
            lines.append("")
        while count_cells(rest) > cells:
            lines[-1], rest = rest[:cells], rest[cells:]
            lines.append("")
        lines[-1] = f"{lines[-1]} {rest}".strip()
    return [line for line in lines if line]


def measure_box(box: FlowBox) -> float:
    """Return the width of a box."""
    texts = (CHARACTER * count_cells(shorten(box.label)), NOTE_CHARACTER * count_cells(shorten(box.note or "-")))
    return max(_MIN_WIDTH, max(texts) + 2 * _PADDING)


def place_flow(flow: Flow, layout: DiagramLayout, direction: Direction, *, is_bare: bool = False) -> PlacedFlow:
    """Place a graph; layers are columns from left to right, or rows from top to bottom.

    A bare one has no text above it, and is dense if its lines have no labels: it is shown next to text.
    """
    shrink = _DENSE if is_bare and not any(line.label for line in flow.lines) else 1.0
    router = _Router(flow, layout, is_rightwards=direction == "rightwards", shrink=shrink)
    lines = [router.route(line) for line in flow.lines]
    points = [point for line in lines for curve in line.curves for point in curve]
    right = max([*(box.x + box.width for box in router.boxes), *(x for x, _ in points)]) + MARGIN
    width = right if is_bare else max(right, _MIN_SHEET)
    title = [] if is_bare else wrap_words(shorten(flow.title, 200), int((width - 2 * MARGIN) / TITLE_CHARACTER))
    legend = wrap_words(shorten(flow.legend, 300), int((width - 2 * MARGIN) / NOTE_CHARACTER)) if flow.legend else []
    head = TITLE_LINE * len(title) + LEGEND_LINE * len(legend) + (0 if is_bare else MARGIN / 2)
    bottom = max([*(box.y + BOX_HEIGHT for box in router.boxes), *(y for _, y in points)])
    return PlacedFlow(
        title=flow.title,
        title_lines=title,
        legend_lines=legend,
        width=width,
        height=head + bottom + MARGIN,
        aside=(width - right) / 2,
        down=head,
        boxes=router.boxes,
        lines=lines,
    )


class _Router:
    """Leads lines along the layers of one graph; points are (along a layer, across the layers) until they are drawn."""

    def __init__(self, flow: Flow, layout: DiagramLayout, *, is_rightwards: bool, shrink: float) -> None:
        self._is_rightwards = is_rightwards
        self._widths = layout.widths
        starts = [along - layout.widths[key] / 2 for key, (along, _) in layout.nodes.items()]
        starts += [along for points in layout.lines.values() for along, _ in points]
        shift = MARGIN - min(starts)

        def place(point: Point) -> tuple[float, int]:
            """Return the place along a layer, and the number of the layer."""
            return point[0] + shift, round(point[1] / LAYER_HEIGHT)

        self._stops = {line: [*map(place, points)] for line, points in layout.lines.items()}
        self._nodes = {key: place(point) for key, point in layout.nodes.items()}
        self._layers = self._measure_layers(flow, shrink)
        self._ports = self._choose_ports(flow)
        self.boxes = [self._place_box(box) for box in flow.boxes]

    def _measure_layers(self, flow: Flow, shrink: float) -> Sequence[tuple[float, float]]:
        """Return the extent of each layer."""
        thick: dict[int, float] = defaultdict(float)
        for box in flow.boxes:
            depth = self._nodes[box.key][1]
            thick[depth] = max(thick[depth], measure_box(box) if self._is_rightwards else BOX_HEIGHT)
        crowds = Counter(min(one[1], other[1]) for stops in self._stops.values() for one, other in pairwise(stops))
        labels: dict[int, float] = defaultdict(float)  # the room that words on lines need beyond a layer
        for line in flow.lines if self._is_rightwards else ():
            depths = [depth for _, depth in self._stops[line.source, line.target][:2]]
            labels[min(depths)] = max(labels[min(depths)], NOTE_CHARACTER * count_cells(line.label and line.words))
        least, most = _GUTTERS["rightwards" if self._is_rightwards else "downwards"]
        found, start = [], MARGIN
        for depth in range(max(thick) + 1):
            found.append((start, start + thick[depth]))
            start += thick[depth] + shrink * min(most, least + _CROWD * crowds[depth]) + labels[depth]
        return found

    def _choose_ports(self, flow: Flow) -> Mapping[tuple[FlowLine, bool], float]:
        """Choose where lines meet the sides of their boxes, so that they cross little."""
        sides: defaultdict[tuple[str, bool], list[tuple[float, FlowLine, bool]]] = defaultdict(list)
        for line in flow.lines:
            stops = self._stops[line.source, line.target]
            is_forward = stops[-1][1] >= stops[0][1]
            is_within = stops[-1][1] == stops[0][1]
            sides[line.source, is_forward].append((stops[1][0], line, True))
            sides[line.target, not is_forward or is_within].append((stops[-2][0], line, False))
        ports: dict[tuple[FlowLine, bool], float] = {}
        for (key, _), ends in sides.items():
            ends.sort(key=lambda end: end[0])
            apart = min(_PORT, _PORTS * self._widths[key] / max(1, len(ends) - 1))
            for number, (_, line, is_start) in enumerate(ends):
                ports[line, is_start] = self._nodes[key][0] + (number - (len(ends) - 1) / 2) * apart
        return ports

    def _place_box(self, box: FlowBox) -> PlacedBox:
        along, depth = self._nodes[box.key]
        start, end = self._layers[depth]
        if self._is_rightwards:
            return PlacedBox(box=box, x=start, y=along - BOX_HEIGHT / 2, width=end - start)
        width = self._widths[box.key]
        return PlacedBox(box=box, x=along - width / 2, y=start, width=width)

    def route(self, line: FlowLine) -> PlacedLine:
        """Lead a line straight through the layers that it passes, curved between them."""
        stops = self._stops[line.source, line.target]
        first, last = (self._ports[line, True], stops[0][1]), (self._ports[line, False], stops[-1][1])
        if first[1] == last[1]:  # of one layer: out behind it, and in again
            edge = self._layers[first[1]][1]
            end = (last[0], edge + _TIP)
            curve = ((first[0], edge), (first[0], edge + _BULGE), (last[0], edge + _BULGE), end)
            return self._make_line(line, [curve], (last[0], edge), _TIP)
        step = 1 if last[1] > first[1] else -1
        sides = [(first[0], self._layers[first[1]][step == 1])]
        for along, depth in [*stops[1:-1], last]:
            sides += [(along, self._layers[depth][side]) for side in ((0, 1) if step == 1 else (1, 0))]
        sides.pop()  # not through the target
        tip = sides[-1]
        sides[-1] = (tip[0], tip[1] - step * _TIP)
        curves = [
            ((along, across), (along, (across + far) / 2), (aside, (across + far) / 2), (aside, far))
            for (along, across), (aside, far) in pairwise(sides)
        ]
        return self._make_line(line, curves, tip, -step * _TIP)

    def _make_line(self, line: FlowLine, curves: Sequence[Curve], tip: Point, back: float) -> PlacedLine:
        """Turn a line sideways if layers are columns; its tip reaches back by a distance."""

        def turn(point: Point) -> Point:
            return (point[1], point[0]) if self._is_rightwards else point

        left, right = ((tip[0] + side * _TIP / 2, tip[1] + back) for side in (-1, 1))
        return PlacedLine(
            line=line,
            curves=[(turn(a), turn(b), turn(c), turn(d)) for a, b, c, d in curves],
            tip=(turn(tip), turn(left), turn(right)),
        )
