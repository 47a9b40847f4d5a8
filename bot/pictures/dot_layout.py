"""Lays a graph out by graphviz' `dot`, where that is installed: it is told sizes and numbers, and never a name."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise

from bot.pictures.layered_layout import LAYER_HEIGHT, DiagramLayout, Line, Point
from indexer import read_output, start_program

_SECONDS = 5.0
_MOST_BYTES = 4 << 20
_INCH = 72.0  # units of ours
_STEPS = 16  # points that a curve is looked at

log = logging.getLogger(__name__)


def lay_out_by_dot(widths: Mapping[str, float], lines: Sequence[Line], *, gap: float) -> DiagramLayout | None:
    """Lay out nodes of these widths; None where there is no dot, or it does not do it in time."""
    names = [*widths]
    source = _write_source(widths, lines, gap)
    try:
        process = start_program(["dot", "-Tplain"])
        with process:
            if process.stdin is not None:
                process.stdin.write(source.encode())
                process.stdin.close()
            output, _ = read_output(process, seconds=_SECONDS, most=_MOST_BYTES)
        return _read_layout(output.decode(), names, lines)
    except FileNotFoundError:
        return None
    except (OSError, OverflowError, ValueError, KeyError, IndexError) as error:  # a TimeoutError is an OSError
        log.warning("dot did not lay a graph out, so it is laid out without: %s", error or type(error).__name__)
        return None


def _write_source(widths: Mapping[str, float], lines: Sequence[Line], gap: float) -> str:
    numbers = {name: number for number, name in enumerate(widths)}
    return "\n".join(
        [
            "digraph {",
            f'nodesep={gap / _INCH:.3f};ranksep=1.2;node [shape=box,fixedsize=true,label="",height=0.5];',
            *(f"n{numbers[name]} [width={width / _INCH:.3f}];" for name, width in widths.items()),
            *(f"n{numbers[source]} -> n{numbers[target]};" for source, target in lines),
            "}",
        ]
    )


def _read_layout(plain: str, names: Sequence[str], lines: Sequence[Line]) -> DiagramLayout:
    """Read what `dot -Tplain` writes, in which y grows upwards; lines pass layers at their middle."""
    rows = [row.split() for row in plain.splitlines()]
    places = {row[1]: (float(row[2]) * _INCH, -float(row[3]) * _INCH) for row in rows if row[0] == "node"}
    layers = sorted({round(y) for _, y in places.values()})
    depths = {key: bisect_left(layers, round(y)) for key, (_, y) in places.items()}
    curves: dict[Line, list[Point]] = {}
    for row in rows:
        if row[0] == "edge":
            numbers = [float(word) * _INCH for word in row[4 : 4 + 2 * int(row[3])]]
            pair = names[int(row[1][1:])], names[int(row[2][1:])]
            curves[pair] = [(x, -y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
    found: dict[Line, tuple[Point, ...]] = {}
    middles = {
        name: (places[f"n{number}"][0], depths[f"n{number}"] * LAYER_HEIGHT) for number, name in enumerate(names)
    }
    for source, target in lines:
        first, last = (round(middles[name][1] / LAYER_HEIGHT) for name in (source, target))
        step = 1 if last > first else -1
        passed = [
            (_find_place(curves[source, target], layers[depth]), depth * LAYER_HEIGHT)
            for depth in range(first + step, last, step)
        ]
        found[source, target] = (middles[source], *passed, middles[target])
    return DiagramLayout(nodes=middles, lines=found)


def _find_place(controls: Sequence[Point], y: float) -> float:
    """Return how far to the right a curve of Bezier is where it is nearest to a height."""
    points = [controls[0]]
    for at in range(0, len(controls) - 3, 3):
        points += [_evaluate(controls[at : at + 4], step / _STEPS) for step in range(1, _STEPS + 1)]
    for (x, height), (next_x, next_height) in pairwise(points):
        if min(height, next_height) <= y <= max(height, next_height) and height != next_height:
            return x + (next_x - x) * (y - height) / (next_height - height)
    return min(points, key=lambda point: abs(point[1] - y))[0]


def _evaluate(curve: Sequence[Point], t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return (
        sum(weight * x for weight, (x, _) in zip(weights, curve, strict=True)),
        sum(weight * y for weight, (_, y) in zip(weights, curve, strict=True)),
    )
