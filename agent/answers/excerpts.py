"""Chooses the few lines of a definition or chunk that bear most on the question."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agent.questions.literals import Literal
from agent.questions.terms import match_terms
from agent.text.statement_starts import LineLayout, is_closing, is_header, is_import, read_layout

EXCERPT_LINES = 12
WHOLE_LINES = 18
NEAR_SIGNATURE = 3

_QUOTES = ('"""', "'''")
_SHORTEST = 3
_FEW_LINES = 6
_LONGEST_HEAD = 150  # lines in which a signature is looked for; decorators can be longer than the function
_PROSE_SHARE = 0.4
_IMPORT_SHARE = 0.1
_LITERAL_WEIGHT = 100.0
_FARTHER = 0.02  # what a line loses of its weight for each line that it stands below the first


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionWeights:
    """What a question emphasises: the stems of its words, and the texts that it quotes."""

    terms: frozenset[str]
    literals: tuple[Literal, ...] = ()


def find_best_window(
    lines: Sequence[str], emphasis: QuestionWeights, *, language: str = "", first: int = 0, last: int | None = None
) -> tuple[int, int, float]:
    """Return start, end (exclusive) and weight of the dozen lines that match best and begin from `first` to `last`.

    The window begins and ends with whole statements where the language lets one tell; a weight of 0 means that
    no line matches the question.
    """
    layout = read_layout(lines, language)
    matches = [match_terms(line, emphasis.terms) for line in lines]
    weights = _weigh_terms(matches)
    shares = [_weigh_line(line, prose) for line, prose in zip(lines, layout.prose, strict=True)]
    quoted = {at for literal in emphasis.literals if (at := literal.first_line("\n".join(lines))) is not None}
    reach = len(lines) if last is None else min(last + 1, len(lines))
    candidates = [at for at in range(first, reach) if layout.starts[at]] or [first]
    best = (-1.0, candidates[0])
    for at in candidates:
        end = _find_end(lines, layout, at)
        value = _score_window(matches[at:end], shares[at:end], weights)
        value += sum(_LITERAL_WEIGHT * (1 - _FARTHER * (line - at)) for line in quoted if at <= line < end)
        if value > best[0] + 1e-9:
            best = (value, at)
    start = _include_header(layout, best[1], first) if best[0] > 0 else best[1]
    end = _find_end(lines, layout, start)
    return _reach_back(layout, start, end, first), end, max(best[0], 0.0)


def _reach_back(layout: LineLayout, start: int, end: int, first: int) -> int:
    """Begin earlier where the window is short because its block ends soon: what leads there belongs to it."""
    earlier = [at for at in range(max(first, end - EXCERPT_LINES), start) if layout.starts[at]]
    return earlier[0] if earlier and end - start < _FEW_LINES else start


def find_signature(lines: Sequence[str], signature: str) -> tuple[int, int]:
    """Return where a definition's signature begins, a few decorators included, and the index after its end."""
    wanted = _strip_spaces(signature).rstrip(":{;=")
    read = ""
    begins: list[int] = []  # of each line, in the text without white space
    for index, line in enumerate(lines[:_LONGEST_HEAD]):
        begins.append(len(read))
        read += _strip_spaces(line)
        at = read.find(wanted) if wanted else -1
        if at >= 0:
            start = bisect_right(begins, at) - 1
            return (0 if start <= NEAR_SIGNATURE else start), index + 1
    return 0, min(1, len(lines))


def find_body_start(lines: Sequence[str], signature: str) -> int:
    """Return the index of the first line after a definition's signature and docstring; 0 if that leaves nothing."""
    head = find_signature(lines, signature)[1]
    if head < len(lines) and lines[head].strip().lstrip("rbuRBU").startswith(_QUOTES):
        head = _find_docstring_end(lines, head)
    while head < len(lines) and not lines[head].strip():
        head += 1
    return head if head < len(lines) else 0


def _weigh_line(line: str, prose: bool) -> float:
    if is_import(line):
        return _IMPORT_SHARE
    return _PROSE_SHARE if prose else 1.0


def _weigh_terms(matches: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weigh a word by how few lines contain it: a word in every line distinguishes none of them."""
    counts: dict[str, int] = {}
    for terms in matches:
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
    return {term: math.log(1 + len(matches) / count) for term, count in counts.items()}


def _score_window(matches: Sequence[frozenset[str]], shares: Sequence[float], weights: dict[str, float]) -> float:
    """Add up each word's best line of the window, the earlier the better, and a little for every further line."""
    best: dict[str, float] = {}
    more = 0.0
    for offset, (terms, share) in enumerate(zip(matches, shares, strict=True)):
        for term in terms:
            value = weights[term] * share * (1 - _FARTHER * offset)
            more += 0.1 * value
            best[term] = max(best.get(term, 0.0), value)
    return sum(best.values()) + more


def _include_header(layout: LineLayout, start: int, first: int) -> int:
    """Move up to the line that opens the block, when it is near: a `raise` means little without its condition."""
    for at in range(start - 1, max(first, start - NEAR_SIGNATURE) - 1, -1):
        if layout.starts[at] and layout.indents[at] < layout.indents[start] and not layout.prose[at]:
            return at
    return start


def _find_end(lines: Sequence[str], layout: LineLayout, start: int) -> int:
    limit = _find_block_end(lines, layout, start)
    if limit < len(lines) and limit == start + EXCERPT_LINES:
        limit = _cut_at_statement(lines, layout, start, limit)
    while limit > start + 1 and (not lines[limit - 1].strip() or _is_dangling(lines, layout, start, limit)):
        limit -= 1
    while limit < len(lines) and is_closing(lines[limit]) and layout.indents[limit] >= layout.indents[start]:
        limit += 1
    return limit


def _is_dangling(lines: Sequence[str], layout: LineLayout, start: int, limit: int) -> bool:
    """Whether the last line only leads to what is cut off: a comment, a decorator, the head of a block."""
    if limit >= len(lines) or limit <= start + _SHORTEST:
        return False
    text = lines[limit - 1]
    return is_header(text) or layout.prose[limit - 1] or text.strip().startswith("@")


def _find_block_end(lines: Sequence[str], layout: LineLayout, start: int) -> int:
    """Return where the block that the window begins in ends, or twelve lines on."""
    limit = min(start + EXCERPT_LINES, len(lines))
    for at in range(start + 1, limit):
        if lines[at].strip() and layout.indents[at] < layout.indents[start]:
            return at
    return limit


def _cut_at_statement(lines: Sequence[str], layout: LineLayout, start: int, limit: int) -> int:
    """Cut before the statement that would be cut in two, or finish it when it is nearly done."""
    if layout.starts[limit] or not lines[limit].strip():
        return limit
    for at in range(limit + 1, min(limit + _SHORTEST, len(lines)) + 1):
        if at == len(lines) or layout.starts[at] or not lines[at].strip():
            return at
    begun = [at for at in range(start + _SHORTEST, limit) if layout.starts[at]]
    return begun[-1] if begun else limit


def _find_docstring_end(lines: Sequence[str], start: int) -> int:
    text = lines[start].strip().lstrip("rbuRBU")
    quotes = text[:3]
    if quotes in text[3:]:
        return start + 1
    closing = (index for index in range(start + 1, len(lines)) if quotes in lines[index])
    return next(closing, len(lines) - 1) + 1


def _strip_spaces(text: str) -> str:
    return "".join(text.split())
