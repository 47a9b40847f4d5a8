"""Finds the headings of a page in Markdown or reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_MARKED = re.compile(r"(?:#{1,6}|={1,6})\s+(?P<text>\S.*?)\s*#*$")
_SHORTEST_UNDERLINE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A heading, and the number of its line."""

    line: int
    text: str


def find_headings(lines: Sequence[str]) -> list[Heading]:
    """Return the headings in order; what stands in a fence is none."""
    found: list[Heading] = []
    is_fenced = False
    for number, (line, below) in enumerate(pairwise([*lines, ""]), 1):
        if line.startswith(("```", "~~~")):
            is_fenced = not is_fenced
        elif is_fenced:
            continue
        elif (marked := _MARKED.match(line)) is not None:
            found.append(Heading(line=number, text=marked["text"]))
        elif line.strip() and _is_underline(below):
            found.append(Heading(line=number, text=line.strip()))
    return found


def _is_underline(line: str) -> bool:
    return len(line) >= _SHORTEST_UNDERLINE and len(set(line)) == 1 and line[0] in "=-~^"
