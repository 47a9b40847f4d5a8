"""Draws a placed graph as a PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from PIL import Image, ImageDraw, ImageFont

from bot.pictures.flow import Look, shorten
from bot.pictures.flow_svg import measure_stroke
from bot.pictures.layered_layout import Point
from bot.pictures.line_numbers import NUMBER_HEIGHT, follow_curve, place_numbers
from bot.pictures.picture_text import FONT_FILE, spell_letters
from bot.pictures.placed_flow import (
    BOX_HEIGHT,
    LEGEND_LINE,
    MARGIN,
    NOTE_CHARACTER,
    TITLE_LINE,
    Curve,
    PlacedBox,
    PlacedFlow,
    PlacedLine,
)

WIDEST = 2_000  # pixels of a picture
_FINE = 2  # drawn larger and made smaller, because Pillow's lines are jagged
_SHARP = 2.0  # pixels of the picture for each of the sheet
_MOST_PIXELS = 60_000_000  # while it is drawn
_DASH = 2.5  # half of a dash, and of the gap after it
_STEPS = 24  # straight pieces of a curve
_COLOURS = 64
_INK, _QUIET, _GREY, _PAPER, _DARK = "#24243e", "#5c5c7a", "#8a8aa5", "#ffffff", "#3b3b58"
# What fills a box, and what is around it.
_LOOKS: dict[Look, tuple[str, str]] = {
    "plain": ("#f2f0ff", "#6a6a94"),
    "folder": ("#dcd8fb", _DARK),
    "main": (_DARK, _DARK),
    "outside": (_PAPER, _GREY),
    "folded": (_PAPER, _GREY),
    "taken": ("#dcd8fb", _DARK),
    "now": (_DARK, _DARK),
}

_Font = ImageFont.FreeTypeFont


def draw_png(flow: PlacedFlow) -> bytes:
    """Return the bytes of the file; a graph that is wide or large is drawn smaller."""
    sharp = min(_SHARP, WIDEST / flow.width)
    scale = min(_FINE * sharp, (_MOST_PIXELS / max(1.0, flow.width * flow.height)) ** 0.5)
    sheet = _Sheet(flow, scale)
    sheet.write_head(flow)
    for line in flow.lines:
        sheet.draw_line(line)
    for line, middle in place_numbers(flow):
        sheet.write_number(line.line.weight, middle)
    for box in flow.boxes:
        sheet.draw_box(box)
    return sheet.save()


class _Sheet:
    """A picture that is drawn on in the pixels of the placed graph."""

    def __init__(self, flow: PlacedFlow, scale: float) -> None:
        self._scale = scale
        self._image = Image.new("RGB", (max(1, round(flow.width * scale)), max(1, round(flow.height * scale))), _PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self._title, self._label, self._note = (ImageFont.truetype(FONT_FILE, size * scale) for size in (15, 12, 10))

    def write_head(self, flow: PlacedFlow) -> None:
        """Write the title and the legend at the top."""
        y = MARGIN / 2
        for line in flow.title_lines:
            y += TITLE_LINE
            self._write(line, (MARGIN, y - 4), self._title, _INK, anchor="ls")
        for line in flow.legend_lines:
            y += LEGEND_LINE
            self._write(line, (MARGIN, y - 3), self._note, _QUIET, anchor="ls")

    def write_number(self, number: int, middle: Point) -> None:
        """Write a number on a line, on a piece of paper."""
        half = (len(str(number)) * NOTE_CHARACTER) / 2 + 1
        corners = [(middle[0] - half, middle[1] - NUMBER_HEIGHT / 2), (middle[0] + half, middle[1] + NUMBER_HEIGHT / 2)]
        self._draw.rectangle([self._scale_up(corner) for corner in corners], fill=_PAPER)
        self._write(str(number), middle, self._note, _QUIET)

    def draw_line(self, placed: PlacedLine) -> None:
        """Draw a line with its tip."""
        points = [point for curve in placed.curves for point in _follow(curve)]
        width = max(1, round(measure_stroke(placed.line.weight) * self._scale))
        if placed.line.is_dashed:
            for start, end in _split_dashes(points):
                self._draw.line([self._scale_up(start), self._scale_up(end)], fill=_GREY, width=width)
        else:
            self._draw.line([*map(self._scale_up, points)], fill=_GREY, width=width, joint="curve")
        self._draw.polygon([self._scale_up(corner) for corner in placed.tip], fill=_GREY)

    def draw_box(self, placed: PlacedBox) -> None:
        """Draw a box with its label and its note."""
        box, is_main = placed.box, placed.box.look == "main"
        fill, edge = _LOOKS[box.look]
        corners = [(placed.x, placed.y), (placed.x + placed.width, placed.y + BOX_HEIGHT)]
        self._draw.rounded_rectangle(
            [self._scale_up(corner) for corner in corners],
            radius=6 * self._scale, fill=fill, outline=edge, width=round(self._scale),
        )  # fmt: skip
        middle = (placed.x + placed.width / 2, placed.y + BOX_HEIGHT / 2)
        up = 7.0 if box.note else 0.0
        self._write(shorten(box.label), (middle[0], middle[1] - up), self._label, _PAPER if is_main else _INK)
        if box.note:
            self._write(shorten(box.note), (middle[0], middle[1] + up + 1), self._note, _PAPER if is_main else _QUIET)

    def save(self) -> bytes:
        """Return the picture as the bytes of a file."""
        size = (max(1, self._image.width // _FINE), max(1, self._image.height // _FINE))
        small = self._image.resize(size, Image.Resampling.LANCZOS).quantize(_COLOURS, dither=Image.Dither.NONE)
        file = io.BytesIO()
        small.save(file, "PNG", optimize=True)
        return file.getvalue()

    def _write(self, text: str, place: Point, font: _Font, colour: str, *, anchor: str = "mm") -> None:
        drawable = shorten(spell_letters(shorten(text, 200)), 200)
        self._draw.text(self._scale_up(place), drawable, fill=colour, font=font, anchor=anchor)

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
    return [follow_curve(curve, step / _STEPS) for step in range(_STEPS + 1)]
