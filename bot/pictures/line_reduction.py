"""Thins out the lines of a graph, and brings its boxes into the order in which most lines run forward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import networkx as nx

from bot.pictures.flow import FlowLine


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
