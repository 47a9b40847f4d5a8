"""Follows the callers or callees of a function over several steps, as a drawable graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from agent import CodeSearch
from bot.pictures.flow import Flow, FlowBox, FlowLine
from bot.pictures.layered_layout import order_boxes
from indexer import CallSite, Definition, Location

MAX_BOXES = 40
DEEPEST = 4  # steps from the function
_MAX_MEANT = 5  # definitions of the name
_FOLDED = "folded"

Direction = Literal["callers", "callees"]


async def map_calls(code: CodeSearch, name: str, direction: Direction) -> Flow | None:
    """Follow the calls from the definitions of a name, breadth first; None if the name is not defined.

    There are at most 40 boxes; the rest are folded into one with their number.
    """
    meant = (await code.definitions(name))[:_MAX_MEANT]
    if not meant:
        return None
    tests = frozenset(entry.path for entry in await code.files() if entry.source_type == "test")
    found = _CallMap(code, direction, tests)
    level: Sequence[Definition] = [found.add_main(definition) for definition in meant]
    for _ in range(DEEPEST):
        level = [fresh for definition in level for fresh in await found.follow(definition)]
        if found.is_full:
            break
    return found.make_flow(name)


class _CallMap:
    """The boxes and lines found so far."""

    def __init__(self, code: CodeSearch, direction: Direction, tests: frozenset[str]) -> None:
        self._code = code
        self._tests = tests  # files, which come last: what is beyond the limit is theirs first
        self._direction = direction
        self._boxes: dict[str, FlowBox] = {}
        self._lines: dict[tuple[str, str], bool] = {}  # whether it is only possible
        self._beyond: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another box."""
        return len(self._boxes) >= MAX_BOXES - 1  # one is for what is folded

    def add_main(self, definition: Definition) -> Definition:
        """Add the subject of the map."""
        self._add(definition, look="main")
        return definition

    async def follow(self, definition: Definition) -> Sequence[Definition]:
        """Add the callers or callees of a definition; return the new ones to follow."""
        name, here = definition.symbol.qualified_name, _make_key(definition)
        if self._direction == "callers":
            sites = [site for site in await self._code.callers(name) if site.callee == definition]
            return self._join(here, ((site, site.caller) for site in sites))
        sites = [site for site in await self._code.callees(name) if site.caller == definition]
        return self._join(here, ((site, site.callee) for site in sites if site.callee is not None))

    def _join(self, here: str, ends: Iterable[tuple[CallSite, Definition | None]]) -> Sequence[Definition]:
        fresh = []
        for site, end in sorted(ends, key=lambda each: (each[1].path if each[1] else each[0].path) in self._tests):
            key = _make_key(end) if end is not None else site.path
            if key not in self._boxes and not self.is_full:
                self._add(end) if end is not None else self._add_module(site)
                fresh += [end] if end is not None else []
            if key not in self._boxes:
                self._beyond.add(key)
                key = _FOLDED
            pair = (key, here) if self._direction == "callers" else (here, key)
            self._lines[pair] = self._lines.get(pair, True) and site.ambiguous
        return fresh

    def _add(self, definition: Definition, *, look: Literal["plain", "main"] = "plain") -> None:
        self._boxes[_make_key(definition)] = FlowBox(
            key=_make_key(definition),
            label=definition.symbol.qualified_name,
            note=f"{definition.path}:{definition.symbol.start_line}",
            link=self._code.permalink(definition.location) or "",
            look=look,
        )

    def _add_module(self, site: CallSite) -> None:
        place = Location(path=site.path, start_line=site.line, end_line=site.line)
        self._boxes[site.path] = FlowBox(
            key=site.path,
            label=site.path.rpartition("/")[2],
            note=f"{site.path}:{site.line}, outside of functions",
            link=self._code.permalink(place) or "",
        )

    def _tell_recursion(self, box: FlowBox) -> FlowBox:
        """Mark recursion in the box, because a line has to lead elsewhere."""
        is_recursive = (box.key, box.key) in self._lines
        return replace(box, note=f"{box.note}, calls itself") if is_recursive else box

    def make_flow(self, name: str) -> Flow:
        """Return the map with its boxes in calling order."""
        boxes = [self._tell_recursion(box) for box in self._boxes.values()]
        if self._beyond:
            boxes.append(FlowBox(key=_FOLDED, label=f"{len(self._beyond)} more", look="folded"))
        is_upwards = self._direction == "callers"
        what = f"Who calls {name}" if is_upwards else f"What {name} calls"
        lines = [
            FlowLine(source=source, target=target, is_dashed=is_possible)
            for (source, target), is_possible in self._lines.items()
            if source != target
        ]
        by_key = {box.key: box for box in (boxes[::-1] if is_upwards else boxes)}
        arrows = "Arrows point to callees." if lines else ""
        possible = "Dashed arrows are possible calls." if any(line.is_dashed for line in lines) else ""
        beyond = f"{len(self._beyond)} more are folded into one box." if self._beyond else ""
        return Flow(
            title=f"{what} in {self._code.repository} at {self._code.commit.sha[:7]}",
            verb="calls",
            boxes=[by_key[key] for key in order_boxes(by_key, lines)],
            lines=lines,
            gathers=is_upwards,
            legend=" ".join(filter(None, (arrows, possible, beyond))),
        )


def _make_key(definition: Definition) -> str:
    return f"{definition.path}\0{definition.symbol.qualified_name}\0{definition.symbol.start_line}"
