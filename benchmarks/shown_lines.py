"""Finds which lines of a repository are in what a model was sent, whatever form the prompt gives them.

A line counts only where its number stands before it, the file's path is in a heading above it, and the file has
that text there: neither a list of folders nor a model's own words can pass for evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

TOKEN_CHARACTERS = 4  # of code, on average
COMPARED = 120  # characters of a line; longer ones are cut in prompts

_NUMBERED = re.compile(r"\s{0,8}(\d{1,7})(?:[:|] ?| )(.*)")
_PATH = re.compile(r"[\w@.+/-]+")
_PLACED = re.compile(r":?(?:L| lines? )?(\d{1,7})[^\]\s)]*[\])]? ?(.*)")
_MAX_HEADING = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownLine:
    """A line of a file that was shown, and how many tokens of evidence had been shown with it."""

    path: str
    line: int
    tokens: float


ReadLines = Callable[[str], Sequence[str]]


def find_shown_lines(texts: Sequence[str], files: Collection[str], read: ReadLines) -> Iterator[ShownLine]:
    """Find the lines in texts, in the order in which they were sent; lines shown again cost their tokens again."""
    spent = 0
    for text in texts:
        path = ""
        for line in text.split("\n"):
            if path and (numbered := _NUMBERED.match(line)) and _is_line(read(path), int(numbered[1]), numbered[2]):
                spent += len(line) + 1
                yield ShownLine(path=path, line=int(numbered[1]), tokens=spent / TOKEN_CHARACTERS)
            elif found := _find_path(line, files):
                path, rest = found
                spent += len(line) + 1
                placed = _PLACED.match(rest)
                if placed and placed[2] and _is_placed(read(path), int(placed[1]), placed[2]):
                    yield ShownLine(path=path, line=int(placed[1]), tokens=spent / TOKEN_CHARACTERS)


def _find_path(line: str, files: Collection[str]) -> tuple[str, str] | None:
    """Return the first path of a file in a line, and what stands after it."""
    for word in _PATH.finditer(line[:_MAX_HEADING]):
        if word[0] in files:
            return word[0], line[word.end() :]
    return None


def _is_placed(lines: Sequence[str], number: int, text: str) -> bool:
    """Whether a text behind a place is the line there, which may have its definition before it: `Order.pay: line`."""
    return _is_line(lines, number, text) or _is_line(lines, number, text.partition(": ")[2])


def _is_line(lines: Sequence[str], number: int, text: str) -> bool:
    if not 1 <= number <= len(lines):
        return False
    wanted, shown = lines[number - 1].strip()[:COMPARED], text.strip()[:COMPARED]
    return wanted == shown or (len(shown) > COMPARED // 4 and wanted.startswith(shown))
