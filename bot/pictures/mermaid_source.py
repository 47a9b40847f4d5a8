"""Reads flowcharts in Mermaid's language into graphs; rejects those with anything else."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.pictures.flow import LONGEST_LABEL, Flow, FlowBox, FlowLine, Shape
from bot.pictures.placed_flow import Direction, wrap_words

LONGEST_SOURCE = 6_000  # characters
MAX_BOXES, MAX_LINES = 40, 80
_DIRECTIONS: dict[str, Direction] = {"TB": "downwards", "TD": "downwards", "LR": "rightwards"}
_HEAD = re.compile(r"(?:graph|flowchart)[ \t]+(\w+)")
_BEGINNING = re.compile(r"(?:%%[^\n]*\n|\s)*")
_BREAK = re.compile(r"[;\s]+|\Z")
_SKIPPED = re.compile(
    r"%%[^\n]*|end(?=[\s;]|\Z)|direction[ \t]+(?:TB|TD|BT|LR|RL)\b"
    r"|(?:classDef|class|style|linkStyle|click)[ \t]+\w[^\n;]*"
)
_SUBGRAPH = re.compile(r"subgraph[ \t]+([^\s;\[]+)[ \t]*([^\n;]*)")
_AND = re.compile(r"&[ \t]*")
_SHAPES: dict[str, Shape] = {"{": "choice", "{{": "choice", "(": "round", "((": "round", "(((": "round", "([": "round"}
_KEY, _CLASS = re.compile(r"\w+(?:[-./]\w+)*"), re.compile(r"(?::::[\w-]+)?[ \t]*")
_OPENING = re.compile(r"\({1,3}\[?|\[[\[(/\\]?|\{\{?|>")
_CLOSINGS = str.maketrans("([{>", ")]}]")
_LABEL = re.compile(r'"([^"\n]+)"|([^]["(){}\n]+)')
# No stroke is longer, so that its end is not looked for again from each of its places.
_LINE = re.compile(
    r"(<?)(?:(-{2,9}[->xo]|={2,9}[=>xo]|-\.{1,9}-[>xo]?)[ \t]*(?:\|([^|\n]*)\|)?"
    r"|(?:--|==|-\.)([^\n]*?)(-{2,9}[->xo]|={2,9}[=>xo]|\.{1,9}-[>xo]?))[ \t]*"
)


class _NotRead(Exception):
    """The source has something unknown, or too much."""


def read_flowchart(source: str) -> tuple[Flow, Direction] | None:
    """Read a flowchart, with its subgraphs flattened; None if it cannot be drawn faithfully."""
    try:
        return _Reader(source).read() if len(source) <= LONGEST_SOURCE else None
    except _NotRead:
        return None


class _Reader:
    """Reads one source from its beginning to its end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._boxes: dict[str, FlowBox] = {}
        self._lines: dict[FlowLine, None] = {}
        self._titles: dict[str, str] = {}  # of subgraphs, which lines may lead to as well

    def read(self) -> tuple[Flow, Direction]:
        self._take(_BEGINNING)
        direction = _DIRECTIONS.get(self._demand(_HEAD)[1])
        while self._demand(_BREAK) and self._at < len(self._source):
            self._read_statement()
        if direction is None or not self._lines or len(self._boxes) > MAX_BOXES:
            raise _NotRead
        boxes = [
            write_label(box, self._titles[key]) if box.label == key and key in self._titles else box
            for key, box in self._boxes.items()
        ]
        told = [replace(line, is_dashed=False) for line in self._lines]  # dashes mean what the chart says they do
        title = Flow(title="Diagram", verb="leads to", boxes=boxes, lines=told).to_text()
        return Flow(title=title, verb="leads to", boxes=boxes, lines=[*self._lines]), direction

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._source, self._at)
        self._at = found.end() if found else self._at
        return found

    def _demand(self, pattern: re.Pattern[str]) -> re.Match[str]:
        if found := self._take(pattern):
            return found
        raise _NotRead

    def _read_statement(self) -> None:
        if self._take(_SKIPPED):
            return
        if subgraph := self._take(_SUBGRAPH):
            self._titles[subgraph[1]] = subgraph[2].strip("[] ") or subgraph[1]
            return
        sources = self._read_boxes()
        while not _BREAK.match(self._source, self._at):
            found = _LINE.match(self._source[self._at :])
            if found is None:
                raise _NotRead
            self._at += found.end()
            stroke = found[2] or found[5]
            line = FlowLine(
                source="", target="", is_dashed="." in stroke, has_tip=stroke[-1] in ">xo",
                label=clean_label(found[3] or found[4] or ""),
            )  # fmt: skip
            targets = self._read_boxes()
            for source, target in ((source, target) for source in sources for target in targets):
                self._lines[replace(line, source=source, target=target)] = None
                if found[1]:
                    self._lines[replace(line, source=target, target=source, label="")] = None
            if len(self._lines) > MAX_LINES:
                raise _NotRead
            sources = targets

    def _read_boxes(self) -> Sequence[str]:
        """Read one box, or several joined by `&`; return their keys."""
        keys: list[str] = []
        while not keys or self._take(_AND):
            key = self._demand(_KEY)[0]
            keys.append(key)
            self._boxes.setdefault(key, FlowBox(key=key, label=key))
            if opening := self._take(_OPENING):
                box = replace(self._boxes[key], shape=_SHAPES.get(opening[0], "box"))
                self._boxes[key] = write_label(box, self._read_label(opening[0].translate(_CLOSINGS)[::-1]))
            self._take(_CLASS)
        return keys

    def _read_label(self, closing: str) -> str:
        label = self._demand(_LABEL)
        if not self._source.startswith(closing, self._at):
            raise _NotRead
        self._at += len(closing)
        return label[1] or label[2]


def clean_label(label: str) -> str:
    """Return a label as plain text: without surrounding quotation marks and backticks, entities decoded."""
    return html.unescape(re.sub(r"#(\w{1,8});", r"&\1;", label.strip().strip('"`').strip()))


def write_label(box: FlowBox, label: str) -> FlowBox:
    """Write a label on a box: its first line, and the rest in small."""
    parts = re.split(r"<br ?/?>", clean_label(label))
    first, *rest = [line for part in parts for line in wrap_words(part, LONGEST_LABEL)] or [box.key]
    return replace(box, label=first, note=" ".join(rest))
