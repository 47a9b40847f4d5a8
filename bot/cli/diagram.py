"""Draws the graph of the agent: its layout in layers, as a PNG, as Mermaid, or as text."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import networkx as nx
from PIL import Image, ImageDraw, ImageFont

from agent import build_graph

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph

Line = tuple[str, str]
Point = tuple[float, float]
# A place in a layer: a node, or where a line passes through the layer, named by the line and the layer.
Place = str | tuple[Line, int]

SWEEPS = 24
GAP = 36.0  # between two places of a layer
LAYER_HEIGHT = 110.0
PASSAGE_WIDTH = 12.0

SCALE = 2  # drawn larger and made smaller, because Pillow's lines are jagged
FONT_SIZE = 18
MARGIN = 60
BOX_HEIGHT = 40.0
PADDING = 16.0
DASH = 7.0
ARROW = 11.0
INK, FILL, PAPER = "#3b3b58", "#f2f0ff", "#ffffff"

LEGEND = "--> always goes there   ..> goes to one of these"


@dataclass(frozen=True, kw_only=True, slots=True)
class DiagramLayout:
    """The middle of each node, and the points that each line runs through, beginning with the middle of its source."""

    nodes: Mapping[str, Point]
    lines: Mapping[Line, tuple[Point, ...]]


def lay_out(widths: Mapping[str, float], lines: Sequence[Line]) -> DiagramLayout:
    """Lay out nodes of these widths, given in the order of the flow: lines that go back run upwards."""
    ranks = _rank_nodes(list(widths), lines)
    chains: dict[Line, list[Place]] = {}
    for source, target in lines:
        step = 1 if ranks[target] > ranks[source] else -1
        passages = [((source, target), rank) for rank in range(ranks[source] + step, ranks[target], step)]
        chains[source, target] = [source, *passages, target]
    neighbours: nx.Graph[Place] = nx.Graph()
    for chain in chains.values():
        nx.add_path(neighbours, chain)
    layers = _fill_layers(ranks, chains)
    _reduce_crossings(layers, neighbours)
    xs = _spread(layers, neighbours, widths)
    points = {place: (xs[place], rank * LAYER_HEIGHT) for rank, layer in enumerate(layers) for place in layer}
    return DiagramLayout(
        nodes={name: points[name] for name in widths},
        lines={line: tuple(points[place] for place in chain) for line, chain in chains.items()},
    )


def _rank_nodes(names: Sequence[str], lines: Sequence[Line]) -> dict[str, int]:
    """Give each node the layer below the lowest one that leads to it."""
    position = {name: number for number, name in enumerate(names)}
    downwards: nx.DiGraph[str] = nx.DiGraph()
    downwards.add_nodes_from(names)
    downwards.add_edges_from(line for line in lines if position[line[0]] < position[line[1]])
    layers = nx.topological_generations(downwards)
    ranks = {name: rank for rank, layer in enumerate(layers) for name in layer}
    return {name: ranks[name] for name in names}


def _fill_layers(ranks: Mapping[str, int], chains: Mapping[Line, Sequence[Place]]) -> list[list[Place]]:
    layers: list[list[Place]] = [[] for _ in range(max(ranks.values()) + 1)]
    for name, rank in ranks.items():
        layers[rank].append(name)
    for chain in chains.values():
        for place in chain[1:-1]:
            layers[place[1]].append(place)  # type: ignore[index]  # the inner places are passages
    return layers


def _reduce_crossings(layers: list[list[Place]], neighbours: nx.Graph[Place]) -> None:
    """Order each layer by where its neighbours stand, downwards and upwards in turn."""
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            position = {place: number / len(each) for each in layers for number, place in enumerate(each)}
            layer.sort(key=lambda place: fmean(position[near] for near in neighbours[place]))


def _spread(
    layers: Sequence[Sequence[Place]], neighbours: nx.Graph[Place], widths: Mapping[str, float]
) -> dict[Place, float]:
    """Move places towards their neighbours, as far as the order and the widths of the layer allow."""

    def room(left: Place, right: Place) -> float:
        sizes = (widths[place] if isinstance(place, str) else PASSAGE_WIDTH for place in (left, right))
        return sum(sizes) / 2 + GAP

    xs: dict[Place, float] = {place: number * GAP for layer in layers for number, place in enumerate(layer)}
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            wanted = [fmean(xs[near] for near in neighbours[place]) for place in layer]
            gaps = [room(left, right) for left, right in pairwise(layer)]
            xs.update(zip(layer, _space_apart(wanted, gaps), strict=True))
    return xs


def _space_apart(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return places at least that far apart, between the ones pushed to the right and the ones pushed to the left."""
    rightwards, leftwards = list(wanted), list(wanted)
    for number, gap in enumerate(gaps):
        rightwards[number + 1] = max(rightwards[number + 1], rightwards[number] + gap)
    for number, gap in reversed(list(enumerate(gaps))):
        leftwards[number] = min(leftwards[number], leftwards[number + 1] - gap)
    return [(one + other) / 2 for one, other in zip(rightwards, leftwards, strict=True)]


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
            self._to_pixels((x - width / 2, y - BOX_HEIGHT / 2)),
            self._to_pixels((x + width / 2, y + BOX_HEIGHT / 2)),
        ]
        self._draw.rounded_rectangle(corners, radius=8 * SCALE, fill=FILL, outline=INK, width=SCALE)
        self._draw.text(self._to_pixels(middle), label, fill=INK, font=font, anchor="mm")

    def arrow(self, points: Sequence[Point], target: Point, *, dashed: bool) -> None:
        """Draw a line that ends at the rim of its target's box, coming from above or from below."""
        *before, last = points
        rim = (last[0], target[1] + math.copysign(BOX_HEIGHT / 2, before[-1][1] - target[1]))
        for start, end in pairwise([*before, rim]):
            for piece in _split_dashes(start, end) if dashed else [(start, end)]:
                self._draw.line([self._to_pixels(point) for point in piece], fill=INK, width=SCALE)
        angle = math.atan2(before[-1][1] - rim[1], before[-1][0] - rim[0])
        sides = [
            (rim[0] + ARROW * math.cos(angle + turn), rim[1] + ARROW * math.sin(angle + turn)) for turn in (-0.4, 0.4)
        ]
        self._draw.polygon([self._to_pixels(point) for point in (rim, *sides)], fill=INK)

    def png(self) -> bytes:
        """Return the drawing as the bytes of a file."""
        file = io.BytesIO()
        size = (self._image.width // SCALE, self._image.height // SCALE)
        self._image.resize(size, Image.Resampling.LANCZOS).save(file, "PNG", optimize=True)
        return file.getvalue()

    def _to_pixels(self, point: Point) -> tuple[float, float]:
        return (point[0] - self._left) * SCALE, (point[1] - self._top) * SCALE


def _split_dashes(start: Point, end: Point) -> Iterator[tuple[Point, Point]]:
    count = max(1, round(math.dist(start, end) / DASH))
    steps = [
        (start[0] + (end[0] - start[0]) * step / count, start[1] + (end[1] - start[1]) * step / count)
        for step in range(count + 1)
    ]
    yield from list(pairwise(steps))[::2]


def read_graph() -> Graph:
    """Return the nodes and edges of the graph as it runs."""
    return build_graph().compile().get_graph()


def format_mermaid() -> str:
    """Write the graph in Mermaid."""
    return read_graph().draw_mermaid()


def format_boxes() -> str:
    """Write every node as a box, in the order of the flow, above the arrows that leave it; fits 80 columns."""
    graph = read_graph()
    lines: list[str] = []
    for name in graph.nodes:
        rule = f"+{'-' * (len(name) + 2)}+"
        arrows = [edge for edge in graph.edges if edge.source == name]
        lines += [rule, f"| {name} |", rule]
        lines += [f"  |{'..>' if edge.conditional else '-->'} {edge.target}" for edge in arrows]
        lines.append("")
    return "\n".join([*lines, LEGEND])
