"""Turns an SVG that citebot wrote into a PNG, and spells out the letters that the font of PNGs lacks."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import resvg_py

from bot.markdown import to_one_line
from bot.pictures.flow import Flow

_FONT_FILE = Path(__file__).parent / "fonts" / "DejaVuSansMono.ttf"
_FONT_NAME = "DejaVu Sans Mono"
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15">{}</text></svg>'
_NO_LETTER = "\uf8fe"


def draw_png(svg: str, zoom: float = 1.0) -> bytes:
    """Draw an SVG, which must be of citebot's own making: one may name files of the machine, and they are drawn."""
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=zoom,
        skip_system_fonts=True,
        font_files=[str(_FONT_FILE)],
        font_family=_FONT_NAME,
        monospace_family=_FONT_NAME,
    )


def spell_out(flow: Flow) -> Flow:
    """Return a graph whose words the font of PNGs can draw."""
    boxes = [replace(box, label=spell_letters(box.label), note=spell_letters(box.note)) for box in flow.boxes]
    return replace(flow, title=spell_letters(flow.title), legend=spell_letters(flow.legend), boxes=boxes)


def spell_letters(text: str) -> str:
    """Write a letter that the font lacks by plainer ones where it is made of such, else by its number: `\\u6f22`."""
    line = to_one_line(text[:1_000])
    return line if line.isascii() else "".join(map(_spell_letter, line))


@lru_cache(maxsize=4_096)
def _spell_letter(letter: str) -> str:
    if _is_drawable(letter):
        return letter
    plain = "".join(each for each in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(each))
    if plain and plain != letter and all(map(_is_drawable, plain)):
        return plain
    return letter.encode("ascii", "backslashreplace").decode()


def _is_drawable(letter: str) -> bool:
    """Whether the font has the letter: it draws the same sign for all that it lacks."""
    return letter.isprintable() and (letter.isascii() or _draw_letter(letter) != _draw_letter(_NO_LETTER))


@lru_cache(maxsize=4_096)
def _draw_letter(letter: str) -> bytes:
    return draw_png(_LETTER.format(letter))
