"""Places the numbers of a graph's lines on their lines, apart from each other and from boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.pictures.layered_layout import Point
from bot.pictures.placed_flow import BOX_HEIGHT, NOTE_CHARACTER, Curve, PlacedFlow, PlacedLine

NUMBER_HEIGHT = 13.0
_AIR = 3.0  # around the digits
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)  # of a curve, the best first
_SAMPLES = 8  # points of each curve that a number should not lie on

Place = tuple[float, float, float, float]  # left, top, right, bottom


def place_numbers(flow: PlacedFlow) -> Sequence[tuple[PlacedLine, Point]]:
    """Return the lines whose number has room, with its middle; the others have none in the picture."""
    taken = [(box.x, box.y, box.x + box.width, box.y + BOX_HEIGHT) for box in flow.boxes]
    points = {
        id(line): [follow_curve(curve, step / _SAMPLES) for curve in line.curves for step in range(_SAMPLES + 1)]
        for line in flow.lines
    }
    found: list[tuple[PlacedLine, Point]] = []
    for line in sorted(flow.lines, key=lambda each: -each.line.weight):
        strangers = [point for key, own in points.items() if key != id(line) for point in own]
        free = [
            (sum(_holds(place, point) for point in strangers), rank, middle, place)
            for rank, (middle, place) in enumerate(_iter_places(line))
            if line.line.weight and not any(_overlap(place, other) for other in taken)
        ]
        if free:
            _, _, middle, place = min(free)
            taken.append(place)
            found.append((line, middle))
    return found


def _iter_places(placed: PlacedLine) -> Iterator[tuple[Point, Place]]:
    half = (len(str(placed.line.weight)) * NOTE_CHARACTER) / 2 + _AIR
    for at in _ALONG:
        for curve in placed.curves[::2]:  # those between layers
            x, y = follow_curve(curve, at)
            yield (x, y), (x - half, y - NUMBER_HEIGHT / 2, x + half, y + NUMBER_HEIGHT / 2)


def follow_curve(curve: Curve, t: float) -> Point:
    """Return the point of a curve at a part of its way."""
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return (
        sum(weight * x for weight, (x, _) in zip(weights, curve, strict=True)),
        sum(weight * y for weight, (_, y) in zip(weights, curve, strict=True)),
    )


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _holds(place: Place, point: Point) -> bool:
    return place[0] <= point[0] <= place[2] and place[1] <= point[1] <= place[3]
