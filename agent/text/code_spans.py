"""Finds code spans: what stands on one line between two runs of as many backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TICKS_OR_BREAK = re.compile(r"`+|\n")

Span = tuple[int, int]


def find_spans(text: str) -> list[Span]:
    """Return where each code span begins and ends, its backticks among it."""
    return list(Spans(text))


def split_spans(text: str) -> tuple[str, list[str]]:
    """Return a text with a space for each code span, and what the spans quote."""
    pieces: list[str] = []
    quoted: list[str] = []
    end = 0
    for start, stop in find_spans(text):
        pieces.append(text[end:start])
        span = text[start:stop]
        ticks = len(span) - len(span.lstrip("`"))
        quoted.append(span[ticks:-ticks])
        end = stop
    return " ".join([*pieces, text[end:]]), quoted


def find_outside(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Find what a pattern matches outside of code spans."""
    spans = Spans(text)
    span = spans.next_from(0)
    for found in pattern.finditer(text):
        while span and span[1] <= found.start():
            span = spans.next_from(span[1])
        if span is None or found.start() < span[0]:
            yield found


class Spans:
    """The code spans of a text in order; `next_from` leaves out those that begin before a place."""

    def __init__(self, text: str) -> None:
        self._runs: list[Span] = []
        self._closing: list[int | None] = []
        last: dict[int, int] = {}  # the last run of each length on this line
        for found in _TICKS_OR_BREAK.finditer(text):
            if found[0] == "\n":
                last = {}
                continue
            length, index = len(found[0]), len(self._runs)
            if length in last:
                self._closing[last[length]] = index
            last[length] = index
            self._runs.append(found.span())
            self._closing.append(None)
        self._at = 0

    def __iter__(self) -> Iterator[Span]:
        end = 0
        while span := self.next_from(end):
            yield span
            end = span[1]

    def next_from(self, start: int) -> Span | None:
        """Return the next span that begins at a place or after it; places must not go back."""
        while self._at < len(self._runs):
            closing = self._closing[self._at]
            if self._runs[self._at][0] >= start and closing is not None:
                return self._runs[self._at][0], self._runs[closing][1]
            self._at += 1
        return None
