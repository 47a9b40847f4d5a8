"""Reads and places sequence diagrams in Mermaid's language; rejects those with anything else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import copysign

from bot.pictures.flow import FlowBox, FlowLine
from bot.pictures.layered_layout import Point
from bot.pictures.mermaid_source import LONGEST_SOURCE, MAX_BOXES, MAX_LINES, clean_label, write_label
from bot.pictures.placed_flow import (
    BOX_HEIGHT,
    GAP,
    MARGIN,
    NOTE_CHARACTER,
    PlacedBox,
    PlacedFlow,
    PlacedLine,
    count_cells,
    measure_box,
)

_ROW, _STEP, _TIP = 34.0, 12.0, 8.0  # pixels from one message to the next, half the height of a loop, the tip
_LOOP, _ABOVE = 36.0, 8.0  # how far a loop goes out, and how far above its message the words stand
_AIR = 28.0  # around the words of a message, and around boxes
_SKIPPED = re.compile(r"%%.*|(?:autonumber|activate|deactivate)\b[\w \t]*")
_PARTICIPANT = re.compile(r"(?:participant|actor)[ \t]+(\S+)(?:[ \t]+as[ \t]+(\S.*))?")
_ARROW = re.compile(r"--?(?:>>|[>x)])[+-]?")
_NOTE = re.compile(r"[Nn]ote[ \t]+(?:over|left of|right of)[ \t]+([^: \t][^:]*)")
_BLOCK = re.compile(r"(loop|alt|else|opt|par|and|critical|option|break)\b(.*)")
_OPENING = frozenset({"loop", "alt", "opt", "par", "critical", "break"})


class _NotRead(Exception):
    """The source has something unknown, or too much."""


def read_sequence(source: str) -> PlacedFlow | None:
    """Read a sequence diagram; None if it cannot be drawn faithfully."""
    lines = [line.strip() for line in source.splitlines()]
    rows = [line for line in lines if line and not _SKIPPED.fullmatch(line)]
    if len(source) > LONGEST_SOURCE or rows[:1] != ["sequenceDiagram"]:
        return None
    try:
        return _Reader().read(rows[1:])
    except _NotRead:
        return None


class _Reader:
    """Reads rows from above; columns get their places once all words between them are known."""

    def __init__(self) -> None:
        self._people: dict[str, FlowBox] = {}
        self._messages: list[tuple[FlowLine, float]] = []
        self._bars: list[tuple[FlowBox, list[str], float]] = []  # notes, and what blocks begin with
        self._ends: list[float] = []
        self._depth = 0
        self._y = MARGIN + BOX_HEIGHT + _ROW

    def read(self, rows: list[str]) -> PlacedFlow:
        for row in rows:
            self._read_row(row)
        if self._depth or not self._messages or len(self._people) > MAX_BOXES or len(self._messages) > MAX_LINES:
            raise _NotRead
        return self._place()

    def _read_row(self, row: str) -> None:
        head, colon, text = row.partition(":")
        if found := _PARTICIPANT.fullmatch(row):
            self._people[found[1]] = write_label(FlowBox(key=found[1], label=found[1]), found[2] or found[1])
        elif row == "end":
            self._depth -= 1
            self._ends.append(self._y - _ROW / 2)
            self._y += _STEP
        elif found := _BLOCK.fullmatch(row):
            self._depth += found[1] in _OPENING
            self._add_bar(f"{found[1]} {found[2]}", [])
        elif colon and (found := _NOTE.fullmatch(head)):
            self._add_bar(text, [self._meet(name) for name in found[1].split(",")])
        elif colon and (found := _ARROW.search(head)):
            source, target = self._meet(head[: found.start()]), self._meet(head[found.end() :])
            line = FlowLine(
                source=source, target=target, is_dashed=found[0].startswith("--"),
                has_tip=found[0].strip("+-") != ">", label=clean_label(text),
            )  # fmt: skip
            self._messages.append((line, self._y))
            self._y += _ROW + _STEP * (source == target)
        else:
            raise _NotRead
        if self._depth < 0:
            raise _NotRead

    def _meet(self, name: str) -> str:
        key = name.strip()
        if not re.fullmatch(r"\w[\w ./]*", key):
            raise _NotRead
        self._people.setdefault(key, write_label(FlowBox(key=key, label=key), key))
        return key

    def _add_bar(self, text: str, over: list[str]) -> None:
        box = write_label(FlowBox(key="", label="", shape="box" if over else "round"), text.strip() or "…")
        self._bars.append((box, over, self._y - _STEP))
        self._y += BOX_HEIGHT + _STEP

    def _place(self) -> PlacedFlow:
        columns = self._space_columns()
        boxes = [_place_box(box, [columns[key]], MARGIN) for key, box in self._people.items()]
        boxes += [_place_box(box, [columns[key] for key in over] or [0.0], y) for box, over, y in self._bars]
        rules = [*self._ends, *(y + BOX_HEIGHT / 2 for _, over, y in self._bars if not over)]
        places = [(line, (columns[line.source], y), (columns[line.target], y)) for line, y in self._messages]
        edges = [box.x + box.width for box in boxes]
        edges += [start[0] + _LOOP + _measure_words(line) for line, start, end in places if start == end]
        rule = FlowLine(source="", target="", has_tip=False)
        lines = [_lead(rule, (x, MARGIN + BOX_HEIGHT), (x, self._y)) for x in columns.values()]
        lines += [_lead(replace(rule, is_dashed=True), (MARGIN / 2, y), (max(edges), y)) for y in rules]
        lines += [_lead(replace(line, label=""), start, end) for line, start, end in places]
        lines += [_lead(line, *[_find_middle(line, start, end)] * 2) for line, start, end in places if line.label]
        names = {key: f"{box.label} {box.note}".strip() for key, box in self._people.items()}
        told = "; ".join(f"{names[line.source]} to {names[line.target]}: {line.label}" for line, _ in self._messages)
        return PlacedFlow(
            title=f"Sequence: {told}", title_lines=[], legend_lines=[], width=max(edges) + MARGIN,
            height=self._y + MARGIN, aside=0, down=0, boxes=boxes, lines=lines,
        )  # fmt: skip

    def _space_columns(self) -> Mapping[str, float]:
        """Place each column with enough room for boxes and for words between it and earlier columns."""
        places: dict[str, float] = {}
        edge = MARGIN  # of the box before
        for key, box in self._people.items():
            half = measure_box(box) / 2
            apart = [
                places[other] + _measure_words(line)
                for line, _ in self._messages
                for one, other in ((line.source, line.target), (line.target, line.source))
                if one == key and other in places
            ]
            places[key] = max([edge + half, *apart])
            loops = [_measure_words(line) - half for line, _ in self._messages if line.source == key == line.target]
            edge = places[key] + half + max([GAP, *loops])
        return places


def _measure_words(line: FlowLine) -> float:
    return NOTE_CHARACTER * count_cells(line.words) + _AIR


def _place_box(box: FlowBox, columns: Sequence[float], y: float) -> PlacedBox:
    """Place a box over one column, or over several."""
    first, last = min(columns), max(columns)
    width = max(measure_box(box), last - first)
    return PlacedBox(box=box, x=max(MARGIN / 2, (first + last - width) / 2), y=y, width=width)


def _find_middle(line: FlowLine, start: Point, end: Point) -> Point:
    """Return the place of a message's words: above its line, or next to a loop."""
    if start == end:
        return start[0] + _LOOP - _STEP + _measure_words(line) / 2, start[1] + _STEP / 2
    return (start[0] + end[0]) / 2, start[1] - _ABOVE


def _lead(line: FlowLine, start: Point, end: Point) -> PlacedLine:
    """Draw a straight line, or a loop to a place below; a line without length has only words."""
    if start == end and line.label == "":
        far, end = start[0] + _LOOP, (end[0], end[1] + _STEP)
        back = (end[0] + _TIP, end[1])
        curve = (start, (far, start[1]), (far, end[1]), back)
    else:
        step = _TIP if line.has_tip and start != end else 0.0
        back = (end[0] - copysign(step, end[0] - start[0]), end[1])
        curve = (start, start, back, back)
    return PlacedLine(
        line=line, curves=[curve], tip=(end, (back[0], back[1] - _TIP / 2), (back[0], back[1] + _TIP / 2))
    )
