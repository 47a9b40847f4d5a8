"""A graph for people: boxes and lines between them, as a list of sentences or as Mermaid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.markdown import to_one_line

LONGEST_LABEL = 36
# Mermaid reads these as markup, or as the end of a label; it takes them as numbers of characters.
_MERMAID = {ord(letter): f"#{ord(letter)};" for letter in '"#&<>[]{}()|`;\\%'}

Look = Literal["plain", "main", "folder", "outside", "folded", "taken", "now"]
Shape = Literal["box", "round", "choice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowBox:
    """One box; `note` is small text below its label, `link` its address, `hint` its tooltip.

    A folded box stands for several; a taken or passed one is on the path through the graph. `name` is its name in
    lists, if that differs from its label. Choices and round boxes look as in other tools' flowcharts.
    """

    key: str
    label: str
    note: str = ""
    link: str = ""
    hint: str = ""
    look: Look = "plain"
    name: str = ""
    shape: Shape = "box"


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowLine:
    """A line between two boxes; dashed if it is only possible, thicker and numbered with a `weight`.

    A `label` replaces the number. A taken line is on the path. Some lines appear only in lists, not in pictures.
    """

    source: str
    target: str
    is_dashed: bool = False
    is_taken: bool = False
    weight: int = 0
    is_only_listed: bool = False
    has_tip: bool = True
    label: str = ""

    @property
    def words(self) -> str:
        """The label of the line."""
        return shorten(self.label) if self.label else str(self.weight or "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """Boxes in the order of the flow; `verb` is the meaning of a line: the source `calls` the target.

    With `gathers`, all lines lead to the last box, and the others are as near to it as possible.
    `legend` explains the rest of the picture.
    """

    title: str
    verb: str
    boxes: Sequence[FlowBox]
    lines: Sequence[FlowLine]
    gathers: bool = False
    legend: str = ""

    def make_drawable(self) -> Flow:
        """Return the drawable part: without list-only lines, and boxes that have no others."""
        lines = [line for line in self.lines if not line.is_only_listed]
        drawn, listed = _find_ends(lines), _find_ends(self.lines)
        return replace(
            self, lines=lines, boxes=[box for box in self.boxes if box.key in drawn or box.key not in listed]
        )

    def to_text(self) -> str:
        """List the lines, a row per source."""
        names = {box.key: shorten(box.name or box.label, 100) for box in self.boxes}
        targets: defaultdict[str, list[str]] = defaultdict(list)
        for line in self.lines:
            number = f" ({line.words})" if line.words else ""
            targets[line.source].append(f"{'possibly ' * line.is_dashed}{names[line.target]}{number}")
        rows = [f"- {names[key]} {self.verb} {', '.join(named)}" for key, named in targets.items()]
        rows += [f"- {names[box.key]}" for box in self.boxes if box.key not in _find_ends(self.lines)]
        return "\n".join([f"{to_one_line(self.title)}:", *rows])

    def to_mermaid(self) -> str:
        """Write it as Mermaid; names never act as markup."""
        drawable = self.make_drawable()
        keys = {box.key: f"n{number}" for number, box in enumerate(drawable.boxes)}
        rows = [f'    {keys[box.key]}["{shorten(box.label).translate(_MERMAID)}"]' for box in drawable.boxes]
        for line in drawable.lines:
            number = f"|{line.words.translate(_MERMAID)}|" if line.words else ""
            rows.append(f"    {keys[line.source]} {'-.->' if line.is_dashed else '-->'}{number} {keys[line.target]}")
        return "\n".join(["graph LR", *rows, ""])


def _find_ends(lines: Sequence[FlowLine]) -> set[str]:
    return {key for line in lines for key in (line.source, line.target)}


def shorten(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a name on one line, a very long one without its middle."""
    line = to_one_line(text[: 20 * longest]).strip() or "(nameless)"
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[:half]}…{line[-half:]}"
