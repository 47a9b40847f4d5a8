"""Chooses the few lines of a definition or chunk that say most about the question."""

from __future__ import annotations

from collections.abc import Sequence

from agent.questions.terms import terms_in

EXCERPT_LINES = 12
WHOLE_LINES = 14

_QUOTES = ('"""', "'''")


def best_window(lines: Sequence[str], terms: frozenset[str], *, first: int = 0) -> tuple[int, int]:
    """Return the start and end (exclusive) of at most twelve lines, from `first` on, that say most of the terms."""
    weights = [len(terms_in(line, terms)) for line in lines]
    last_start = max(first, len(lines) - EXCERPT_LINES)
    starts = range(first, last_start + 1)
    start = max(starts, key=lambda at: (sum(weights[at : at + EXCERPT_LINES]), -at))
    end = min(start + EXCERPT_LINES, len(lines))
    if any(weights[start:end]):
        # Begin shortly before the first line that matters, so that the window is not all lead-in or all tail.
        matter = next(at for at in range(start, end) if weights[at])
        start = max(first, min(matter - 2, last_start))
        end = min(start + EXCERPT_LINES, len(lines))
    return _without_blank_edges(lines, start, end)


def body_start(lines: Sequence[str], signature: str) -> int:
    """Return the index of the first line after a definition's signature and docstring; 0 if that leaves nothing."""
    head = _signature_end(lines, signature)
    if head < len(lines) and lines[head].strip().lstrip("rbuRBU").startswith(_QUOTES):
        head = _docstring_end(lines, head)
    return head if head < len(lines) else 0


def _signature_end(lines: Sequence[str], signature: str) -> int:
    ends = signature.strip().rsplit("\n", 1)[-1].strip().rstrip(":{ ")[-20:]
    for index, line in enumerate(lines[:20]):
        if ends and ends in line:
            return index + 1
    return min(1, len(lines))


def _docstring_end(lines: Sequence[str], start: int) -> int:
    text = lines[start].strip().lstrip("rbuRBU")
    quotes = text[:3]
    if quotes in text[3:]:
        return start + 1
    closing = (index for index in range(start + 1, len(lines)) if quotes in lines[index])
    return next(closing, len(lines) - 1) + 1


def _without_blank_edges(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    while start < end - 1 and not lines[start].strip():
        start += 1
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return start, end
