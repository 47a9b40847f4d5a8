"""Lines of code as programs are shown them: numbered, and cut where there is too much. Pure functions."""

from __future__ import annotations

import re

from bot.markdown import replace_control_characters

LONGEST_LINE = 400  # characters
MOST_HIT_LINES = 30  # of one place that a search found
_BEFORE = 8  # of those, before the line that speaks most for the place
_LONGEST_QUERY = 1_000
_WORD = re.compile(r"[^\W_]{3,}")


def number_lines(text: str, first: int) -> str:
    """Put before each line its number and a tab."""
    if not text:
        return ""
    return "\n".join(f"{number}\t{cut_line(line)}" for number, line in enumerate(text.split("\n"), start=first))


def cut_line(line: str) -> str:
    """Return a line, or the beginning of one that is too long, without what would steer a terminal."""
    shown = replace_control_characters(line[: LONGEST_LINE + 1].rstrip("\r"))
    return shown if len(shown) <= LONGEST_LINE else f"{shown[: LONGEST_LINE - 1]}…"


def show_hit(text: str, first: int, query: str) -> str:
    """Number the lines of a place that was found: all, or those around the one with most words of the query."""
    lines = text.split("\n")
    if len(lines) <= MOST_HIT_LINES:
        return number_lines(text, first)
    words = set(_WORD.findall(query[:_LONGEST_QUERY].casefold()))
    counts = [sum(word in line.casefold() for word in words) for line in lines]
    best = counts.index(max(counts))
    start = max(0, min(best - _BEFORE, len(lines) - MOST_HIT_LINES))
    return number_lines("\n".join(lines[start : start + MOST_HIT_LINES]), first + start)
