"""Text as pictures hold it: how wide it is, where it is broken, and spelled out where the font lacks a letter."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

from bot.markdown import to_one_line
from bot.pictures.flow import Flow

FONT_FILE = Path(__file__).parent / "fonts" / "DejaVuSansMono.ttf"
_SIZE = 24  # at which glyphs are compared
_NO_LETTER = "\uffff"


def count_cells(text: str) -> int:
    """Return how many letters of a monospace font a text is as wide as."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap_words(text: str, cells: int) -> list[str]:
    """Break the first 1,000 characters of a text into lines of so many cells, between words where they are shorter."""
    lines = [""]
    for word in text[:1_000].split():
        rest = word
        if lines[-1] and count_cells(lines[-1]) + 1 + count_cells(rest) > cells:
            lines.append("")
        while count_cells(rest) > cells:
            lines[-1], rest = rest[:cells], rest[cells:]
            lines.append("")
        lines[-1] = f"{lines[-1]} {rest}".strip()
    return [line for line in lines if line]


def spell_out(flow: Flow) -> Flow:
    """Return a graph whose words the font of pictures can draw."""
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


@lru_cache(maxsize=4_096)
def _is_drawable(letter: str) -> bool:
    """Whether the font has the letter: for all that it lacks, it has one and the same sign."""
    if letter.isascii():
        return letter.isprintable()
    return bytes(_open_font().getmask(letter)) != bytes(_open_font().getmask(_NO_LETTER))


@lru_cache(maxsize=1)
def _open_font() -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONT_FILE, _SIZE)
