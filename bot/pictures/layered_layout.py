"""Lays a graph out in layers, from top to bottom, with lines that pass between the boxes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import fmean

import networkx as nx

from bot.pictures.flow import FlowLine

Line = tuple[str, str]
Point = tuple[float, float]
# A place in a layer: a node, or where a line passes through the layer, named by the line and the layer.
Place = str | tuple[Line, int]

SWEEPS = 24
GAP = 36.0  # between two places of a layer, unless more or less is wanted
LAYER_HEIGHT = 110.0
PASSAGE_WIDTH = 12.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DiagramLayout:
    """The width and the middle of each node, and the points that each line runs through, from middle to middle."""

    widths: Mapping[str, float]
    nodes: Mapping[str, Point]
    lines: Mapping[Line, tuple[Point, ...]]


def lay_out(
    widths: Mapping[str, float],
    lines: Sequence[Line],
    *,
    gap: float = GAP,
    passage: float = PASSAGE_WIDTH,
    widest: float = math.inf,
) -> DiagramLayout:
    """Lay out nodes of these widths, given in the order of the flow: lines that go back run upwards.

    A layer whose nodes are wider than `widest` becomes several.
    """
    ranks = _break_layers(_rank_nodes(list(widths), lines), widths, lines, gap=gap, widest=widest)
    chains: dict[Line, list[Place]] = {}
    for source, target in lines:
        step = 1 if ranks[target] > ranks[source] else -1
        passages = [((source, target), rank) for rank in range(ranks[source] + step, ranks[target], step)]
        chains[source, target] = [source, *passages, target]
    neighbours: nx.Graph[Place] = nx.Graph()
    neighbours.add_nodes_from(widths)
    for chain in chains.values():
        nx.add_path(neighbours, chain)
    layers = _fill_layers(ranks, chains)
    _reduce_crossings(layers, neighbours)
    xs = _spread(layers, neighbours, widths, gap=gap, passage=passage)
    points = {place: (xs[place], rank * LAYER_HEIGHT) for rank, layer in enumerate(layers) for place in layer}
    return DiagramLayout(
        widths=widths,
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


def _break_layers(
    ranks: Mapping[str, int], widths: Mapping[str, float], lines: Sequence[Line], *, gap: float, widest: float
) -> dict[str, int]:
    """Move nodes of an overly wide layer to the next one: those with most outgoing lines last."""
    leaving = Counter(source for source, _ in lines)
    leaving.subtract(target for _, target in lines)
    found: dict[str, int] = {}
    layer = 0
    for _, names in groupby(sorted(ranks, key=lambda name: (ranks[name], leaving[name])), key=ranks.__getitem__):
        room = widest
        for name in names:
            if room < widths[name] and room < widest:
                layer, room = layer + 1, widest
            found[name], room = layer, room - widths[name] - gap
        layer += 1
    return {name: found[name] for name in ranks}


def _fill_layers(ranks: Mapping[str, int], chains: Mapping[Line, Sequence[Place]]) -> list[list[Place]]:
    layers: list[list[Place]] = [[] for _ in range(max(ranks.values()) + 1)]
    for name, rank in ranks.items():
        layers[rank].append(name)
    for chain in chains.values():
        for place in chain[1:-1]:
            layers[place[1]].append(place)  # type: ignore[index]  # the inner places are passages
    return layers


def _reduce_crossings(layers: list[list[Place]], neighbours: nx.Graph[Place]) -> None:
    """Order each layer by its neighbours' positions, downwards and upwards alternately."""
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            position = {place: number / len(each) for each in layers for number, place in enumerate(each)}
            layer.sort(key=lambda place: fmean(position[near] for near in neighbours[place] or (place,)))


def _spread(
    layers: Sequence[Sequence[Place]],
    neighbours: nx.Graph[Place],
    widths: Mapping[str, float],
    *,
    gap: float,
    passage: float,
) -> dict[Place, float]:
    """Move places towards their neighbours within the order and the widths of the layer."""

    def room(left: Place, right: Place) -> float:
        sizes = (widths[place] if isinstance(place, str) else passage for place in (left, right))
        return sum(sizes) / 2 + gap

    xs: dict[Place, float] = {place: number * gap for layer in layers for number, place in enumerate(layer)}
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            wanted = [fmean(xs[near] for near in neighbours[place] or (place,)) for place in layer]
            gaps = [room(left, right) for left, right in pairwise(layer)]
            xs.update(zip(layer, _space_apart(wanted, gaps), strict=True))
    return xs


def _space_apart(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return places at least that far apart, between the positions pushed right and left."""
    rightwards, leftwards = list(wanted), list(wanted)
    for number, gap in enumerate(gaps):
        rightwards[number + 1] = max(rightwards[number + 1], rightwards[number] + gap)
    for number, gap in reversed(list(enumerate(gaps))):
        leftwards[number] = min(leftwards[number], leftwards[number + 1] - gap)
    return [(one + other) / 2 for one, other in zip(rightwards, leftwards, strict=True)]


def mark_implied(lines: Sequence[FlowLine]) -> list[FlowLine]:
    """Mark lines as only listed if other lines lead to the same target through other boxes; cycles stay."""
    graph: nx.DiGraph[str] = nx.DiGraph([(line.source, line.target) for line in lines])
    circles = nx.condensation(graph)
    circle_of: Mapping[str, int] = circles.graph["mapping"]
    needed = {*nx.transitive_reduction(circles).edges}
    pairs = {line: (circle_of[line.source], circle_of[line.target]) for line in lines}
    return [
        replace(line, is_only_listed=pairs[line][0] != pairs[line][1] and pairs[line] not in needed) for line in lines
    ]


def order_boxes(keys: Iterable[str], lines: Sequence[FlowLine]) -> list[str]:
    """Order boxes so that few lines, and light ones, run backward.

    Source: Eades, Lin and Smyth, "A fast and effective heuristic for the feedback arc set problem", 1993.
    """
    left = dict.fromkeys(keys)
    weights = [(line.source, line.target, max(1, line.weight)) for line in lines]
    first: list[str] = []
    last: list[str] = []
    while left:
        rest = [each for each in weights if each[0] in left and each[1] in left]
        sources, targets = {source for source, _, _ in rest}, {target for _, target, _ in rest}
        if starts := [key for key in left if key not in targets]:
            taken = starts[0]
            first.append(taken)
        elif ends := [key for key in left if key not in sources]:
            taken = ends[0]
            last.append(taken)
        else:
            gains = dict.fromkeys(left, 0)
            for source, target, weight in rest:
                gains[source] += weight
                gains[target] -= weight
            taken = max(left, key=gains.__getitem__)
            first.append(taken)
        del left[taken]
    return [*first, *reversed(last)]
