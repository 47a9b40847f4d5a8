"""Finds and rewrites the citation marks of an answer, and leaves the same characters in quoted code alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(?=[^`\n]*$)")
_SPAN_OR_MARK = re.compile(
    r"(?P<ticks>`+)(?P<rest>[^\n]*?[^`])(?P=ticks)(?!`)|(?P<space> ?)\[(?P<mark>\d{1,4})\](?!\()"
)


def marks_in(text: str) -> list[int]:
    """Return the marks of an answer in order of first appearance."""
    seen: dict[int, None] = {}

    def note(mark: int) -> int:
        seen.setdefault(mark)
        return mark

    _rewrite(text, note)
    return list(seen)


def renumber(text: str, numbers: Mapping[int, int]) -> str:
    """Give each mark its new number; a mark without one is taken out together with the space before it."""
    return _rewrite(text, numbers.get)


def _rewrite(text: str, number: Callable[[int], int | None]) -> str:
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if fence:
            lines.append(line)
            if opening and opening[1][0] == fence[0] and len(opening[1]) >= len(fence) and line.strip() == opening[1]:
                fence = ""
        elif opening:
            fence = opening[1]
            lines.append(line)
        else:
            lines.append(_SPAN_OR_MARK.sub(lambda found: _replaced(found, number), line))
    return "\n".join(lines)


def _replaced(found: re.Match[str], number: Callable[[int], int | None]) -> str:
    if found["mark"] is None:
        return found[0]
    new = number(int(found["mark"]))
    return "" if new is None else f"{found['space']}[{new}]"
