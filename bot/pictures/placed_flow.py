"""Where the boxes and lines of a graph are on a sheet: in columns from left to right, or in rows from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.pictures.flow import Flow, FlowBox, FlowLine, shorten
from bot.pictures.layered_layout import LAYER_HEIGHT, DiagramLayout, Point

BOX_HEIGHT = 40.0
GUTTER = 96.0  # between two columns
GAP = 14.0  # between two boxes of a column
MARGIN = 16.0
CHARACTER, NOTE_CHARACTER = 7.3, 6.1  # the widths of one, in the 12 and 10 pixels that they are written in
PADDING = 12.0
TIP = 8.0
_LEAST_WIDTH = 90.0
_BULGE = 60.0  # by how much a line within a column leaves it
_ROW = 72.0  # from one row to the next
_ASIDE = 9.0  # by how much a line that runs upwards keeps away from the one that runs down beside it

Curve = tuple[Point, Point, Point, Point]  # of Bezier: its beginning, two points that it leans to, its end


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedBox:
    """A box with the place of its upper left corner."""

    box: FlowBox
    x: float
    y: float
    width: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedLine:
    """A line as curves, the last of which ends where its tip begins; `tip` is the point that the tip has."""

    line: FlowLine
    curves: Sequence[Curve]
    tip: Point


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedFlow:
    """A graph on a sheet of a width and a height, both in pixels."""

    title: str
    width: float
    height: float
    boxes: Sequence[PlacedBox]
    lines: Sequence[PlacedLine]


def measure_column(boxes: Sequence[FlowBox]) -> float:
    """Return how wide boxes are; all are as wide as the widest."""
    widths = [max(CHARACTER * len(shorten(box.label)), NOTE_CHARACTER * len(shorten(box.note))) for box in boxes]
    return max([_LEAST_WIDTH, *(width + 2 * PADDING for width in widths)])


def place_flow(flow: Flow, layout: DiagramLayout) -> PlacedFlow:
    """Turn a layout on its side: what it has as layers become columns."""
    width = measure_column(flow.boxes)
    least = min(along for along, _ in layout.nodes.values()) if layout.nodes else 0.0
    least = min([least, *(along for points in layout.lines.values() for along, _ in points)])

    def place(point: Point) -> Point:
        """Return the middle of the left side of the box that would be there."""
        along, depth = point
        return (
            MARGIN + depth / LAYER_HEIGHT * (width + GUTTER),
            MARGIN + along - least + BOX_HEIGHT / 2,
        )

    boxes = []
    for box in flow.boxes:
        x, y = place(layout.nodes[box.key])
        boxes.append(PlacedBox(box=box, x=x, y=y - BOX_HEIGHT / 2, width=width))
    lines = [
        _route(line, [place(point) for point in layout.lines[line.source, line.target]], width) for line in flow.lines
    ]
    points = [point for line in lines for curve in line.curves for point in curve]
    return PlacedFlow(
        title=flow.title,
        width=max([*(box.x + width for box in boxes), *(x for x, _ in points), 0.0]) + MARGIN,
        height=max([*(box.y + BOX_HEIGHT for box in boxes), *(y for _, y in points), 0.0]) + MARGIN,
        boxes=boxes,
        lines=lines,
    )


def place_upright(flow: Flow, layout: DiagramLayout, widths: Mapping[str, float]) -> PlacedFlow:
    """Place a graph as it is laid out, in rows, with boxes of these widths: so it fits beside text."""
    sides = [x + side * widths[key] / 2 for key, (x, _) in layout.nodes.items() for side in (-1, 1)]
    sides += [x + side * _ASIDE for points in layout.lines.values() for x, _ in points for side in (-1, 1)]
    left, top = min(sides, default=0.0) - MARGIN, -BOX_HEIGHT / 2 - MARGIN

    def place(point: Point) -> Point:
        """Return where the middle of a box would be, in whole pixels."""
        return float(round(point[0] - left)), float(round(point[1] / LAYER_HEIGHT * _ROW - top))

    boxes = []
    for box in flow.boxes:
        (x, y), width = place(layout.nodes[box.key]), float(round(widths[box.key]))
        boxes.append(PlacedBox(box=box, x=x - width // 2, y=y - BOX_HEIGHT / 2, width=width))
    return PlacedFlow(
        title=flow.title,
        width=max(sides, default=0.0) + MARGIN - left,
        height=max((box.y + BOX_HEIGHT for box in boxes), default=0.0) + MARGIN,
        boxes=boxes,
        lines=[
            _lead_upright(line, [place(at) for at in layout.lines[line.source, line.target]]) for line in flow.lines
        ],
    )


def _lead_upright(line: FlowLine, middles: Sequence[Point]) -> PlacedLine:
    """Lead a line from row to row, down or up: straight through those that it passes, curved between them."""
    down = 1.0 if middles[-1][1] > middles[0][1] else -1.0
    aside = _ASIDE if down < 0 else 0.0
    rims = [(x + aside, y + side * down * BOX_HEIGHT / 2) for x, y in middles for side in (-1, 1)][1:-1]
    tip = rims[-1]
    rims[-1] = (tip[0], tip[1] - down * TIP)
    curves = [
        ((x, y), (x, (y + to_y) / 2), (to_x, (y + to_y) / 2), (to_x, to_y)) for (x, y), (to_x, to_y) in pairwise(rims)
    ]
    return PlacedLine(line=line, curves=curves, tip=tip)


def _route(line: FlowLine, sides: Sequence[Point], width: float) -> PlacedLine:
    """Lead a line from side to side of the columns: straight through those that it passes, curved between them."""
    (from_x, from_y), (to_x, to_y) = sides[0], sides[-1]
    if from_x == to_x:  # of one column: out on its right, and in again
        start, end = (from_x + width, from_y), (to_x + width + TIP, to_y)
        curve = (start, (start[0] + _BULGE, from_y), (end[0] + _BULGE, to_y), end)
        return PlacedLine(line=line, curves=[curve], tip=(to_x + width, to_y))
    forward = to_x > from_x
    stops = [
        (x + width, y) if is_right else (x, y)
        for x, y in sides
        for is_right in ((False, True) if forward else (True, False))
    ][1:-1]  # neither into the source nor through the target
    tip = stops[-1]
    stops[-1] = (tip[0] - TIP if forward else tip[0] + TIP, tip[1])
    return PlacedLine(line=line, curves=[*_join(stops)], tip=tip)


def _join(stops: Sequence[Point]) -> Iterator[Curve]:
    for (x, y), (to_x, to_y) in pairwise(stops):
        middle = (x + to_x) / 2
        yield (x, y), (middle, y), (middle, to_y), (to_x, to_y)
