"""Draws a placed graph as a PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from PIL import Image, ImageDraw, ImageFont

from bot.pictures.flow import shorten
from bot.pictures.layered_layout import Point
from bot.pictures.placed_flow import BOX_HEIGHT, TIP, Curve, PlacedBox, PlacedFlow, PlacedLine

_FINE = 2  # drawn larger and made smaller, because Pillow's lines are jagged
_SHARP = 1.5  # pixels of the picture for each of the sheet
_MOST_PIXELS = 60_000_000  # while it is drawn
_DASH = 2.5  # half of a dash, and of the gap after it
_STEPS = 24  # straight pieces of a curve
_COLOURS = 64
_INK, _QUIET, _GREY, _FILL, _PAPER = "#24243e", "#5c5c7a", "#8a8aa5", "#f2f0ff", "#ffffff"
_DARK = "#3b3b58"


def draw_png(flow: PlacedFlow) -> bytes:
    """Return the bytes of the file; a very large graph is drawn smaller."""
    scale = min(_FINE * _SHARP, (_MOST_PIXELS / max(1.0, flow.width * flow.height)) ** 0.5)
    sheet = _Sheet(flow, scale)
    for line in flow.lines:
        sheet.draw_line(line)
    for box in flow.boxes:
        sheet.draw_box(box)
    return sheet.save()


class _Sheet:
    """A picture that is drawn on in the pixels of the placed graph."""

    def __init__(self, flow: PlacedFlow, scale: float) -> None:
        self._scale = scale
        self._image = Image.new("RGB", (max(1, round(flow.width * scale)), max(1, round(flow.height * scale))), _PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self._label, self._note = (ImageFont.load_default(size * scale) for size in (12, 10))

    def draw_line(self, placed: PlacedLine) -> None:
        """Draw a line with its tip."""
        points = [point for curve in placed.curves for point in _follow(curve)]
        for start, end in _split_dashes(points) if placed.line.is_dashed else pairwise(points):
            self._draw.line([self._scale_up(start), self._scale_up(end)], fill=_GREY, width=round(1.3 * self._scale))
        (x, y), (from_x, from_y) = placed.tip, placed.curves[-1][3]
        wide, high = (0.0, TIP / 2) if from_x != x else (TIP / 2, 0.0)
        corners = [(x, y), (from_x - wide, from_y - high), (from_x + wide, from_y + high)]
        self._draw.polygon([self._scale_up(corner) for corner in corners], fill=_GREY)

    def draw_box(self, placed: PlacedBox) -> None:
        """Draw a box with its label and its note."""
        box, is_main = placed.box, placed.box.look == "main"
        fill = _DARK if is_main else _FILL if box.look == "plain" else _PAPER
        edge = _GREY if box.look == "folded" else _DARK
        corners = [(placed.x, placed.y), (placed.x + placed.width, placed.y + BOX_HEIGHT)]
        self._draw.rounded_rectangle(
            [self._scale_up(corner) for corner in corners],
            radius=6 * self._scale, fill=fill, outline=edge, width=round(self._scale),
        )  # fmt: skip
        middle = (placed.x + placed.width / 2, placed.y + BOX_HEIGHT / 2)
        up = 7.0 if box.note else 0.0
        self._write(box.label, (middle[0], middle[1] - up), self._label, _PAPER if is_main else _INK)
        if box.note:
            self._write(box.note, (middle[0], middle[1] + up + 1), self._note, _PAPER if is_main else _QUIET)

    def save(self) -> bytes:
        """Return the picture as the bytes of a file."""
        size = (max(1, self._image.width // _FINE), max(1, self._image.height // _FINE))
        small = self._image.resize(size, Image.Resampling.LANCZOS).quantize(_COLOURS, dither=Image.Dither.NONE)
        file = io.BytesIO()
        small.save(file, "PNG", optimize=True)
        return file.getvalue()

    def _write(self, text: str, middle: Point, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, colour: str) -> None:
        # The font that comes with Pillow has hardly more letters than these, and an empty box for all others.
        known = "".join(letter if letter.isascii() or letter == "…" else "?" for letter in shorten(text))
        self._draw.text(self._scale_up(middle), known.replace("…", "..."), fill=colour, font=font, anchor="mm")

    def _scale_up(self, point: Point) -> Point:
        return point[0] * self._scale, point[1] * self._scale


def _split_dashes(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Yield every other piece of a line, all of about one length."""
    along = 0.0
    for start, end in pairwise(points):
        length = math.dist(start, end)
        count = max(1, round(length / _DASH))
        for step in range(count):
            if int(along / (2 * _DASH)) % 2 == 0:
                yield tuple(  # type: ignore[misc]  # two points
                    (start[0] + (end[0] - start[0]) * at / count, start[1] + (end[1] - start[1]) * at / count)
                    for at in (step, step + 1)
                )
            along += length / count


def _follow(curve: Curve) -> Sequence[Point]:
    """Return points on a curve, from its beginning to its end."""
    points = []
    for step in range(_STEPS + 1):
        t = step / _STEPS
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
        points.append((
            sum(weight * x for weight, (x, _) in zip(weights, curve, strict=True)),
            sum(weight * y for weight, (_, y) in zip(weights, curve, strict=True)),
        ))  # fmt: skip
    return points
