"""Compares two texts line by line, in time that no text can make long."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

# Lines that differ at most before two texts count as wholly different; time and memory grow with the square of it.
_MOST_EDITS = 400

Match = tuple[int, int, int]  # where equal lines begin in the old text and in the new one, and how many there are


def find_matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[Match]:
    """Return the runs of lines that both texts have, in order; the last one is empty and stands at both ends."""
    start = _count_common(old, new)
    end = _count_common(old[start:][::-1], new[start:][::-1])
    inner = _trace_back(_search(old[start : len(old) - end], new[start : len(new) - end]))
    found = [(0, 0, start), *((a + start, b + start, n) for a, b, n in inner), (len(old) - end, len(new) - end, end)]
    return [*(match for match in found if match[2]), (len(old), len(new), 0)]


def find_changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int, int]]:
    """Return what was replaced: from and to which line of the old text, and by which lines of the new one."""
    matches = [(0, 0, 0), *find_matches(old, new)]
    changes = ((a + n, next_a, b + n, next_b) for (a, b, n), (next_a, next_b, _) in pairwise(matches))
    return [change for change in changes if change[0] < change[1] or change[2] < change[3]]


def _count_common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _search(old: Sequence[bytes], new: Sequence[bytes]) -> list[dict[int, tuple[int, int]]]:
    """Find the shortest way from one text to the other (Myers): per number of edits, how far each diagonal comes.

    A diagonal holds the line of the old text where its last run of equal lines begins, and the one where that ends.
    Empty if the texts differ in too many lines.
    """
    ends = {1: 0}
    steps: list[dict[int, tuple[int, int]]] = []
    for edits in range(_MOST_EDITS + 1):
        step: dict[int, tuple[int, int]] = {}
        for diagonal in range(-edits, edits + 1, 2):
            ways = (ends.get(diagonal + 1, -1), ends.get(diagonal - 1, -2) + 1)  # a line added, a line removed
            begin = max((way for way in ways if 0 <= way <= len(old) and way - diagonal <= len(new)), default=-1)
            if begin < 0:
                continue
            line = begin
            while line < len(old) and line - diagonal < len(new) and old[line] == new[line - diagonal]:
                line += 1
            step[diagonal] = (begin, line)
            if line == len(old) and line - diagonal == len(new):
                return [*steps, {diagonal: (begin, line)}]
        ends = {diagonal: end for diagonal, (_, end) in step.items()}
        steps.append(step)
    return []


def _trace_back(steps: list[dict[int, tuple[int, int]]]) -> list[Match]:
    """Follow the way back from its end, and return the runs of equal lines on it."""
    if not steps:
        return []
    found: list[Match] = []
    (diagonal,) = steps[-1]
    for number in reversed(range(len(steps))):
        begin, end = steps[number][diagonal]
        if end > begin:
            found.append((begin, begin - diagonal, end - begin))
        if number:
            down = steps[number - 1].get(diagonal + 1)
            diagonal += 1 if down is not None and down[1] == begin else -1
    return found[::-1]
