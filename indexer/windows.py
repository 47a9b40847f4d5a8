"""Cutting text without a syntax tree into consecutive lines: by size, at blank lines, and at headings.

Rows count from 0, and a range of rows includes both ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

Rows = tuple[int, int]

_HEADING = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_UNDERLINE = re.compile("|".join(rf"\{sign}{{3,}}\s*" for sign in "=-~^*+#\"'`.:_"))


class SizedLines:
    """The lines of a file with the size of any run of them at hand."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")
        self._offsets = [0, *accumulate(map(len, self.texts))]

    def size(self, first: int, last: int) -> int:
        """Return how many characters the rows have, line ends between them included."""
        return self._offsets[last + 1] - self._offsets[first] + last - first

    def text(self, first: int, last: int) -> str:
        """Return the rows as they stand in the file."""
        return "\n".join(self.texts[first : last + 1])

    def is_blank(self, row: int) -> bool:
        """Tell whether a row has nothing but white space."""
        return not self.texts[row].strip()

    def trim_blank(self, first: int, last: int) -> Rows | None:
        """Leave out blank rows at both ends; None when nothing else is there."""
        while first <= last and self.is_blank(first):
            first += 1
        while last >= first and self.is_blank(last):
            last -= 1
        return (first, last) if first <= last else None


def split_lines(lines: SizedLines, first: int, last: int, limit: int) -> Iterator[Rows]:
    """Cut rows into pieces of about equal size and at most `limit` characters, at a blank row where one is near.

    A single row that is longer becomes a piece of its own. Blank rows at the ends of a piece are left out.
    """
    while first <= last:
        end = _window_end(lines, first, last, limit)
        piece = lines.trim_blank(first, end)
        if piece:
            yield piece
        first = end + 1


def _window_end(lines: SizedLines, first: int, last: int, limit: int) -> int:
    total = lines.size(first, last)
    if total <= limit:
        return last
    aim = total / -(-total // limit)
    blank = None
    for row in range(first, last + 1):
        if row > first and lines.size(first, row) > limit:
            return row - 1 if blank is None else blank
        if lines.is_blank(row) and lines.size(first, row) > limit / 2:
            blank = row
        if lines.size(first, row) >= aim:
            return row if blank is None else blank
    return last


def split_sections(lines: SizedLines, is_heading: Callable[[int], bool], limit: int, enough: int) -> Iterator[Rows]:
    """Cut a document before headings: sections under `enough` characters join the next, long ones are windowed."""
    last = len(lines.texts) - 1
    starts = [0, *(row for row in range(1, last + 1) if is_heading(row)), last + 1]
    first = 0
    for start, following in pairwise(starts):
        size = lines.size(first, start - 1) if start > first else 0
        if size > enough or (start > first and lines.size(first, following - 1) > limit):
            yield from split_lines(lines, first, start - 1, limit)
            first = start
    yield from split_lines(lines, first, last, limit)


def find_markdown_headings(texts: Sequence[str]) -> frozenset[int]:
    """Return the rows of `#` headings outside code fences, and of titles that are underlined."""
    found: set[int] = set()
    fenced = False
    for row, line in enumerate(texts):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (_HEADING.match(line) or _is_underlined(texts, row)):
            found.add(row)
    return frozenset(found)


def find_rst_headings(texts: Sequence[str]) -> frozenset[int]:
    """Return the rows where the titles of a reStructuredText document begin, their overline included."""
    titles = {row for row in range(len(texts)) if _is_underlined(texts, row)}
    return frozenset(row - 1 if row and _UNDERLINE.fullmatch(texts[row - 1]) else row for row in titles)


def _is_underlined(texts: Sequence[str], row: int) -> bool:
    """Tell whether a row is a title: words at the margin, and a line of one sign below that is about as long."""
    line = texts[row].rstrip()
    if row + 1 >= len(texts) or not line or line[0].isspace() or _UNDERLINE.fullmatch(line):
        return False
    underline = texts[row + 1].rstrip()
    return len(underline) + 2 >= len(line) and _UNDERLINE.fullmatch(underline) is not None
