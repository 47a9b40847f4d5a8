"""Cutting a syntax tree into runs of whole lines: large nodes between their children, small neighbours together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from indexer.outline import read_node_rows
from indexer.windows import Rows, SizedLines, split_lines


@dataclass(kw_only=True, slots=True)
class _Frame:
    """A node whose children are being placed; its runs are those from index `base` on."""

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
        """Return runs of rows in order; neighbours may share a row, and blank rows may be in none."""
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
            self._lead(frame, first, last)
            return
        if frame.lead is not None and first > frame.lead[1] + 1:
            self._place(frame, *frame.lead)
            frame.lead = None
        start = first if frame.lead is None else frame.lead[0]
        if self._lines.size(start, last) > self._limit and last > first and node.child_count:
            self._descend(frame, node, first)
        else:
            frame.lead = None
            self._place(frame, start, last)

    def _lead(self, frame: _Frame, first: int, last: int) -> None:
        """Hold comments and attributes back: they go with the node right below them."""
        if frame.lead is not None and first <= frame.lead[1] + 1:
            frame.lead[1] = last
            return
        if frame.lead is not None:
            self._place(frame, *frame.lead)
            frame.lead = None
        if len(self._runs) > frame.base and first <= self._runs[-1][1]:
            self._place(frame, first, last)
        else:
            frame.lead = [first, last]

    def _place(self, frame: _Frame, first: int, last: int) -> None:
        """Put rows into the current run of a node while they fit, else into a new one."""
        if len(self._runs) > frame.base:
            current = self._runs[-1]
            if first <= current[1] or self._lines.size(current[0], last) <= self._limit:
                current[1] = max(current[1], last)
                return
        self._runs.append([first, last])

    def _descend(self, frame: _Frame, node: Node, first: int) -> None:
        """Begin a new run with a large node; the head it stands under (`class Foo:`) and its comments come along."""
        base = len(self._runs)
        if self._is_head(frame):
            base -= 1
        inner = _Frame(children=iter(node.children), base=base, first_row=first)
        if frame.lead is not None:
            self._place(inner, *frame.lead)
            frame.lead = None
        self._frames.append(inner)

    def _is_head(self, frame: _Frame) -> bool:
        if frame.is_root or len(self._runs) <= frame.base:
            return False
        first, last = self._runs[-1]
        return first <= frame.first_row and self._lines.size(first, last) < self._head_limit

    def _close(self, frame: _Frame) -> None:
        """Finish a node; what stood before it is put to its first run where both fit."""
        if frame.lead is not None:
            self._place(frame, *frame.lead)
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
