"""Cuts a syntax tree, or text without one, into chunks of whole lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tree_sitter import Node

from indexer.parsing.outline import read_node_rows

Rows = tuple[int, int]

_HEADING = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_UNDERLINE = re.compile("|".join(rf"\{sign}{{3,}}\s*" for sign in "=-~^*+#\"'`.:_"))


@dataclass(kw_only=True, slots=True)
class _Frame:
    """A node whose children are being placed; its runs start at index `base`."""

    children: Iterator[Node]
    base: int
    first_row: int
    is_root: bool = False
    lead: list[int] | None = None


class _Splitter:
    """Places the nodes of one tree into runs of rows, without recursion: trees may be thousands of levels deep."""

    def __init__(self, lines: SizedLines, leading: frozenset[str], limit: int, head_limit: int) -> None:
        self._lines = lines
        self._leading = leading
        self._limit = limit
        self._head_limit = head_limit
        self._runs: list[list[int]] = []
        self._frames: list[_Frame] = []

    def run(self, root: Node) -> list[list[int]]:
        """Return runs of rows in order; neighbours may share a row, and runs may skip blank rows."""
        self._frames.append(_Frame(children=iter(root.children), base=0, first_row=0, is_root=True))
        while self._frames:
            frame = self._frames[-1]
            node = next(frame.children, None)
            if node is None:
                self._close(frame)
            else:
                self._visit(frame, node)
        return self._runs

    def _visit(self, frame: _Frame, node: Node) -> None:
        first, last = read_node_rows(node)
        if node.is_extra or node.type in self._leading:
            self._hold_back(frame, first, last)
            return
        if frame.lead is not None and first > frame.lead[1] + 1:
            self._place_rows(frame, *frame.lead)
            frame.lead = None
        start = first if frame.lead is None else frame.lead[0]
        if self._lines.size(start, last) > self._limit and last > first and node.child_count:
            self._descend(frame, node, first)
        else:
            frame.lead = None
            self._place_rows(frame, start, last)

    def _hold_back(self, frame: _Frame, first: int, last: int) -> None:
        """Delay comments and attributes: they go with the node directly below them."""
        if frame.lead is not None and first <= frame.lead[1] + 1:
            frame.lead[1] = last
            return
        if frame.lead is not None:
            self._place_rows(frame, *frame.lead)
            frame.lead = None
        if len(self._runs) > frame.base and first <= self._runs[-1][1]:
            self._place_rows(frame, first, last)
        else:
            frame.lead = [first, last]

    def _place_rows(self, frame: _Frame, first: int, last: int) -> None:
        """Put rows into the current run of a node while they fit, else into a new one."""
        if len(self._runs) > frame.base:
            current = self._runs[-1]
            if first <= current[1] or self._lines.size(current[0], last) <= self._limit:
                current[1] = max(current[1], last)
                return
        self._runs.append([first, last])

    def _descend(self, frame: _Frame, node: Node, first: int) -> None:
        """Begin a new run with a large node; its head (`class Foo:`) and comments come along."""
        base = len(self._runs)
        if not frame.is_root and base > frame.base:
            head_first, head_last = self._runs[-1]
            if head_first <= frame.first_row and self._lines.size(head_first, head_last) < self._head_limit:
                base -= 1
        inner = _Frame(children=iter(node.children), base=base, first_row=first)
        if frame.lead is not None:
            self._place_rows(inner, *frame.lead)
            frame.lead = None
        self._frames.append(inner)

    def _close(self, frame: _Frame) -> None:
        """Finish a node; preceding rows join its first run if both fit."""
        if frame.lead is not None:
            self._place_rows(frame, *frame.lead)
        self._frames.pop()
        parent_base = self._frames[-1].base if self._frames else len(self._runs)
        if parent_base < frame.base < len(self._runs):
            before, first = self._runs[frame.base - 1], self._runs[frame.base]
            if self._lines.size(before[0], first[1]) <= self._limit:
                first[0] = before[0]
                del self._runs[frame.base - 1]


def split_tree(root: Node, lines: SizedLines, leading: frozenset[str], limit: int, merge_below: int) -> Iterator[Rows]:
    """Cut a file along its tree into pieces of at most `limit` characters; neighbours under `merge_below` join.

    `leading` are types of nodes that stay with the node below them, as comments do. The pieces are in order, do not
    overlap and hold every row that is not blank.
    """
    runs = _Splitter(lines, leading, limit, merge_below).run(root)
    starts = [0, *sorted({first for first, _ in runs} - {0}), len(lines.texts)]
    whole = (lines.trim_blank(start, following - 1) for start, following in pairwise(starts))
    for first, last in _merge_pieces([piece for piece in whole if piece], lines, limit, merge_below):
        yield from split_lines(lines, first, last, limit)


def _merge_pieces(pieces: list[Rows], lines: SizedLines, limit: int, merge_below: int) -> list[Rows]:
    merged: list[Rows] = []
    for first, last in pieces:
        before = merged[-1] if merged else None
        if (
            before
            and lines.size(before[0], last) <= limit
            and min(lines.size(*before), lines.size(first, last)) < merge_below
        ):
            merged[-1] = (before[0], last)
        else:
            merged.append((first, last))
    return merged


class SizedLines:
    """The lines of a file, with the size of any run of them."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")
        self._offsets = [0, *accumulate(map(len, self.texts))]

    def size(self, first: int, last: int) -> int:
        """Return the length of the rows in characters, including line ends between them."""
        return self._offsets[last + 1] - self._offsets[first] + last - first

    def text(self, first: int, last: int) -> str:
        """Return the rows as in the file."""
        return "\n".join(self.texts[first : last + 1])

    def is_blank(self, row: int) -> bool:
        """Whether a row has only white space."""
        return not self.texts[row].strip()

    def trim_blank(self, first: int, last: int) -> Rows | None:
        """Trim blank rows at both ends; None if nothing else is left."""
        while first <= last and self.is_blank(first):
            first += 1
        while last >= first and self.is_blank(last):
            last -= 1
        return (first, last) if first <= last else None


def split_lines(lines: SizedLines, first: int, last: int, limit: int) -> Iterator[Rows]:
    """Cut rows into pieces of about equal size and at most `limit` characters, at blank rows if possible.

    A longer row becomes a separate piece. Blank rows at the ends of a piece are dropped.
    """
    while first <= last:
        end = _find_window_end(lines, first, last, limit)
        piece = lines.trim_blank(first, end)
        if piece:
            yield piece
        first = end + 1


def _find_window_end(lines: SizedLines, first: int, last: int, limit: int) -> int:
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
        elif not fenced and (_HEADING.match(line) or _is_rst_heading(texts, row)):
            found.add(row)
    return frozenset(found)


def find_rst_headings(texts: Sequence[str]) -> frozenset[int]:
    """Return the rows where the titles of a reStructuredText document begin, including their overlines."""
    titles = {row for row in range(len(texts)) if _is_rst_heading(texts, row)}
    return frozenset(row - 1 if row and _UNDERLINE.fullmatch(texts[row - 1]) else row for row in titles)


def _is_rst_heading(texts: Sequence[str], row: int) -> bool:
    """Whether a row is a title: words at the margin, above a line of one sign of similar length."""
    line = texts[row].rstrip()
    if row + 1 >= len(texts) or not line or line[0].isspace() or _UNDERLINE.fullmatch(line):
        return False
    underline = texts[row + 1].rstrip()
    return len(underline) + 2 >= len(line) and _UNDERLINE.fullmatch(underline) is not None
