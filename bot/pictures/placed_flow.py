"""Places the boxes and lines of a graph on a sheet: layers as columns or rows, lines in the gaps between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bot.pictures.flow import Flow, FlowBox, FlowLine, shorten
from bot.pictures.layered_layout import LAYER_HEIGHT, DiagramLayout, Point
from bot.pictures.picture_text import count_cells, wrap_words

BOX_HEIGHT = 40.0
GAP = 14.0  # between two boxes of a layer
MARGIN = 16.0
CHARACTER, NOTE_CHARACTER = 7.25, 6.05  # the widths of one, in the 12 and 10 pixels that they are written in
TITLE_CHARACTER, TITLE_LINE, LEGEND_LINE = 9.05, 20.0, 14.0  # of the title, in 15 pixels, and of the legend, in 10
PADDING = 12.0
TIP = 8.0
_LEAST_WIDTH, _LEAST_SHEET = 90.0, 420.0
_GUTTERS = {"rightwards": (48.0, 80.0), "downwards": (44.0, 84.0)}  # between two layers, with few and with many lines
_CROWD = 2.0  # by how much a line widens its gutter
_ROW = 72.0  # from one row to the next where a graph stands beside text
_ASIDE = 9.0  # by how much a line that runs upwards keeps away there from the one that runs down beside it
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
    """A line as curves, the last of which ends where its tip begins; the first corner of the tip is its point."""

    line: FlowLine
    curves: Sequence[Curve]
    tip: tuple[Point, Point, Point]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedFlow:
    """A graph on a sheet of a width and a height, both in pixels, with the lines of text at its top."""

    title: str
    title_lines: Sequence[str]
    legend_lines: Sequence[str]
    width: float
    height: float
    boxes: Sequence[PlacedBox]
    lines: Sequence[PlacedLine]


def measure_box(box: FlowBox) -> float:
    """Return how wide a box is."""
    texts = (CHARACTER * count_cells(shorten(box.label)), NOTE_CHARACTER * count_cells(shorten(box.note or "-")))
    return max(_LEAST_WIDTH, max(texts) + 2 * PADDING)


def measure_along(flow: Flow, direction: Direction) -> dict[str, float]:
    """Return how much of its layer each box takes."""
    return {box.key: BOX_HEIGHT if direction == "rightwards" else measure_box(box) for box in flow.boxes}


def place_flow(flow: Flow, layout: DiagramLayout, direction: Direction = "rightwards") -> PlacedFlow:
    """Place a graph with its text; layers are columns that follow each other rightwards, or rows downwards."""
    router = _Router(flow, layout, direction)
    lines = router.route_lines()
    points = [point for line in lines for curve in line.curves for point in curve]
    right = max([*(box.x + box.width for box in router.boxes), *(x for x, _ in points)]) + MARGIN
    width = max(right, _LEAST_SHEET)
    title = wrap_words(shorten(flow.title, 200), int((width - 2 * MARGIN) / TITLE_CHARACTER))
    legend = wrap_words(shorten(flow.legend, 300), int((width - 2 * MARGIN) / NOTE_CHARACTER)) if flow.legend else []
    head = MARGIN / 2 + TITLE_LINE * len(title) + LEGEND_LINE * len(legend)
    aside = (width - right) / 2
    boxes = [PlacedBox(box=each.box, x=each.x + aside, y=each.y + head, width=each.width) for each in router.boxes]
    bottom = max([*(box.y + BOX_HEIGHT for box in boxes), *(y + head for _, y in points)])
    return PlacedFlow(
        title=flow.title,
        title_lines=title,
        legend_lines=legend,
        width=width,
        height=bottom + MARGIN,
        boxes=boxes,
        lines=[_shift(line, aside, head) for line in lines],
    )


def place_upright(flow: Flow, layout: DiagramLayout, widths: Mapping[str, float]) -> PlacedFlow:
    """Place a graph as it is laid out, in rows, with boxes of these widths: close together: so it fits beside text."""
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
        title_lines=(),
        legend_lines=(),
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
    x, y = rims[-1]
    back = y - down * TIP
    rims[-1] = (x, back)
    curves = [
        ((a, b), (a, (b + to_b) / 2), (to_a, (b + to_b) / 2), (to_a, to_b)) for (a, b), (to_a, to_b) in pairwise(rims)
    ]
    return PlacedLine(line=line, curves=curves, tip=((x, y), (x - TIP / 2, back), (x + TIP / 2, back)))


def _shift(placed: PlacedLine, aside: float, down: float) -> PlacedLine:
    def move(point: Point) -> Point:
        return point[0] + aside, point[1] + down

    curves = [(move(a), move(b), move(c), move(d)) for a, b, c, d in placed.curves]
    point, left, right = placed.tip
    return PlacedLine(line=placed.line, curves=curves, tip=(move(point), move(left), move(right)))


class _Router:
    """Leads lines along the layers of one graph; points are (along a layer, across the layers) until they are drawn."""

    def __init__(self, flow: Flow, layout: DiagramLayout, direction: Direction) -> None:
        self._flow = flow
        self._is_rightwards = direction == "rightwards"
        self._along = measure_along(flow, direction)
        starts = [along - self._along[key] / 2 for key, (along, _) in layout.nodes.items()]
        starts += [along for points in layout.lines.values() for along, _ in points]
        shift = MARGIN - min(starts)
        self._stops = {
            line: [(along + shift, round(depth / LAYER_HEIGHT)) for along, depth in points]
            for line, points in layout.lines.items()
        }
        self._nodes = {
            key: (along + shift, round(depth / LAYER_HEIGHT)) for key, (along, depth) in layout.nodes.items()
        }
        self._layers = self._measure_layers(direction)
        self._ports = self._choose_ports()
        self.boxes = [self._place_box(box) for box in flow.boxes]

    def _measure_layers(self, direction: Direction) -> Sequence[tuple[float, float]]:
        """Return where each layer begins and ends."""
        thick: dict[int, float] = defaultdict(float)
        for box in self._flow.boxes:
            depth = self._nodes[box.key][1]
            thick[depth] = max(thick[depth], measure_box(box) if self._is_rightwards else BOX_HEIGHT)
        crowds = Counter(
            min(one[1], other[1])
            for line in self._flow.lines_to_draw
            for one, other in pairwise(self._stops[line.source, line.target])
        )
        least, most = _GUTTERS[direction]
        found, start = [], MARGIN
        for depth in range(max(thick) + 1):
            found.append((start, start + thick[depth]))
            start += thick[depth] + min(most, least + _CROWD * crowds[depth])
        return found

    def _choose_ports(self) -> Mapping[tuple[FlowLine, bool], float]:
        """Choose where along the sides of their boxes lines begin and end, so that they cross little."""
        sides: defaultdict[tuple[str, bool], list[tuple[float, FlowLine, bool]]] = defaultdict(list)
        for line in self._flow.lines_to_draw:
            stops = self._stops[line.source, line.target]
            is_forward = stops[-1][1] >= stops[0][1]
            is_within = stops[-1][1] == stops[0][1]
            sides[line.source, is_forward].append((stops[1][0], line, True))
            sides[line.target, not is_forward or is_within].append((stops[-2][0], line, False))
        ports: dict[tuple[FlowLine, bool], float] = {}
        for (key, _), ends in sides.items():
            ends.sort(key=lambda end: end[0])
            apart = min(_PORT, _PORTS * self._along[key] / max(1, len(ends) - 1))
            for number, (_, line, is_start) in enumerate(ends):
                ports[line, is_start] = self._nodes[key][0] + (number - (len(ends) - 1) / 2) * apart
        return ports

    def _place_box(self, box: FlowBox) -> PlacedBox:
        along, depth = self._nodes[box.key]
        start, end = self._layers[depth]
        width = measure_box(box) if not self._is_rightwards else end - start
        if self._is_rightwards:
            return PlacedBox(box=box, x=start, y=along - BOX_HEIGHT / 2, width=width)
        return PlacedBox(box=box, x=along - width / 2, y=start, width=width)

    def route_lines(self) -> list[PlacedLine]:
        """Lead every line that is drawn."""
        return [self._route(line) for line in self._flow.lines_to_draw]

    def _route(self, line: FlowLine) -> PlacedLine:
        """Lead a line straight through the layers that it passes, curved between them."""
        stops = self._stops[line.source, line.target]
        first, last = (self._ports[line, True], stops[0][1]), (self._ports[line, False], stops[-1][1])
        if first[1] == last[1]:  # of one layer: out behind it, and in again
            edge = self._layers[first[1]][1]
            end = (last[0], edge + TIP)
            curve = ((first[0], edge), (first[0], edge + _BULGE), (last[0], edge + _BULGE), end)
            return self._make_line(line, [curve], (last[0], edge), TIP)
        step = 1 if last[1] > first[1] else -1
        sides = [(first[0], self._layers[first[1]][step == 1])]
        for along, depth in [*stops[1:-1], last]:
            sides += [(along, self._layers[depth][side]) for side in ((0, 1) if step == 1 else (1, 0))]
        sides.pop()  # not through the target
        tip = sides[-1]
        sides[-1] = (tip[0], tip[1] - step * TIP)
        return self._make_line(line, [*_join(sides)], tip, -step * TIP)

    def _make_line(self, line: FlowLine, curves: Sequence[Curve], tip: Point, back: float) -> PlacedLine:
        """Turn a line on its side where layers are columns; its tip reaches so far back."""
        corners = (tip, (tip[0] - TIP / 2, tip[1] + back), (tip[0] + TIP / 2, tip[1] + back))
        return PlacedLine(
            line=line,
            curves=[(self._turn(a), self._turn(b), self._turn(c), self._turn(d)) for a, b, c, d in curves],
            tip=(self._turn(corners[0]), self._turn(corners[1]), self._turn(corners[2])),
        )

    def _turn(self, point: Point) -> Point:
        return (point[1], point[0]) if self._is_rightwards else point


def _join(stops: Sequence[Point]) -> Iterator[Curve]:
    for (along, across), (to_along, to_across) in pairwise(stops):
        middle = (across + to_across) / 2
        yield (along, across), (along, middle), (to_along, middle), (to_along, to_across)
