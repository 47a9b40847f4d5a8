"""Finds the code in Markdown: spans between backticks, and fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TICKS_OR_BREAK = re.compile(r"`+|\n")

Span = tuple[int, int]


def find_spans(text: str) -> list[Span]:
    """Return the range of each code span, including its backticks."""
    return list(Spans(text))


def split_spans(text: str) -> tuple[str, list[str]]:
    """Return a text with a space for each code span, and the quoted texts."""
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
    """Find the matches of a pattern outside code spans."""
    spans = Spans(text)
    span = spans.next_from(0)
    for found in pattern.finditer(text):
        while span and span[1] <= found.start():
            span = spans.next_from(span[1])
        if span is None or found.start() < span[0]:
            yield found


class Spans:
    """The code spans of a text in order; `next_from` skips those before a position."""

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
        """Return the next span at or after a position; positions must not decrease."""
        while self._at < len(self._runs):
            closing = self._closing[self._at]
            if self._runs[self._at][0] >= start and closing is not None:
                return self._runs[self._at][0], self._runs[closing][1]
            self._at += 1
        return None


# Fences for every reader of Markdown.
_MARKDOWN = re.compile(r"(?P<indent> {0,3})(?P<run>`{3,}(?!`)|~{3,}(?!~))(?P<info>[^`\n]*)\n?\Z")
# What chats show as one: tildes are none on Discord, models indent the fences of list items, and nobody writes a
# longer run.
_CHAT = re.compile(r"(?P<indent>[ \t]{0,12})(?P<run>`{3,40}(?!`))(?P<info>[^`\n]*)\n?\Z")
_IN_LIST = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)*(?:(?P<fence>`{3,}[^`\n]*)|~{3}.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeFence:
    """The opening fence of a code block: its white space, its backticks or tildes, and its language."""

    indent: str
    run: str
    info: str

    @property
    def marker(self) -> str:
        """Return the line that closes the block."""
        return f"{self.indent}{self.run}"

    @property
    def opener(self) -> str:
        """Return the line that opens the block."""
        return f"{self.marker}{self.info}"


class CodeBlockScanner:
    """Scans lines and knows the code block of the next one; `chat` reads fences as chats do."""

    def __init__(self, *, chat: bool = False) -> None:
        self.fence: CodeFence | None = None
        self._chat = chat

    def take(self, line: str) -> bool:
        """Return whether the line is code, or opens or closes a block."""
        was_open = self.fence is not None
        if found := _CHAT.match(line) if self._chat else _MARKDOWN.match(line):
            fence = CodeFence(indent=found["indent"], run=found["run"], info=found["info"].strip())
            if self.fence is None:
                self.fence = fence
            elif not fence.info and fence.run.startswith(self.fence.run):
                self.fence = None
        return was_open or self.fence is not None


def find_open_fence(text: str) -> CodeFence | None:
    """Return the fence of the code block that a text ends in, if any."""
    scanner = CodeBlockScanner()
    for line in text.split("\n"):
        scanner.take(line)
    return scanner.fence


def move_fence_to_margin(line: str, *, is_open: bool) -> str:
    """Write a fence in the first column, where every Markdown reader sees it; drop one of tildes.

    In a list item, a block would end with the item. `is_open` says that the line is in a code
    block.
    """
    if is_open:
        return line.lstrip() if line.lstrip().startswith("```") else line
    found = _IN_LIST.fullmatch(line)
    return line if found is None else found["fence"] or ""


def strip_fence(text: str) -> str:
    """Return JSON without a code block that a model has put around it, even on one line."""
    return text.strip("`").removeprefix("json").strip() if text.startswith("```") else text
