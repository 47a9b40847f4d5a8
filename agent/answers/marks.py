"""Finds and rewrites the citation marks of an answer, and leaves the same characters in quoted code alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(?=[^`\n]*$)")
_SPAN_OR_MARK = re.compile(
    r"(?P<ticks>`+)(?P<rest>[^\n]*?[^`])(?P=ticks)(?!`)|(?P<space> ?)\[(?P<mark>\d{1,4})\](?!\()"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:\s*\[\d{1,4}\])*\s+(?=[A-Z`*_\"'(\[])")
_MARKS = re.compile(r"\[\d{1,4}\]")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """One mark where it stands: its number, the claim that it supports, and which claim of the answer that is."""

    number: int
    claim: str
    claim_id: tuple[int, int]


class Fences:
    """Tells line by line whether it is part of a code block."""

    def __init__(self) -> None:
        self.open = ""

    def take(self, line: str) -> bool:
        """Return whether the line is code, or opens or closes a block."""
        opening = _FENCE.match(line)
        if self.open:
            if opening and opening[1][0] == self.open[0] and len(opening[1]) >= len(self.open):
                self.open = "" if line.strip() == opening[1] else self.open
            return True
        self.open = opening[1] if opening else ""
        return opening is not None


def marks_in(text: str) -> list[int]:
    """Return the marks of an answer in order of first appearance."""
    return list(dict.fromkeys(mark.number for mark in marks(text)))


def marks(text: str) -> list[Mark]:
    """Return every mark of an answer, in order."""
    return list(_marks(text))


def replace(text: str, new: Sequence[str]) -> str:
    """Put a text in the place of each mark, in order; an empty one also takes the space before the mark."""
    following = iter(new)

    def put(found: re.Match[str]) -> str:
        text = next(following)
        return f"{found['space']}{text}" if text else ""

    return _rewrite(text, put)


def renumber(text: str, numbers: Mapping[int, int]) -> str:
    """Give each mark its new number; a mark without one is taken out together with the space before it."""

    def put(found: re.Match[str]) -> str:
        number = numbers.get(int(found["mark"]))
        return "" if number is None else f"{found['space']}[{number}]"

    return _rewrite(text, put)


def _rewrite(text: str, put: Callable[[re.Match[str]], str]) -> str:
    fences = Fences()
    return "\n".join(
        line
        if fences.take(line)
        else _SPAN_OR_MARK.sub(lambda found: put(found) if found["mark"] is not None else found[0], line)
        for line in text.split("\n")
    )


def _marks(text: str) -> Iterator[Mark]:
    fences = Fences()
    before = ""
    for number, line in enumerate(text.split("\n")):
        if fences.take(line):
            continue
        found = [match for match in _SPAN_OR_MARK.finditer(line) if match["mark"] is not None]
        sentences = _sentences(line)
        for match in found:
            start, claim = _claim(line, sentences, match.start("mark"))
            said = claim if _says_something(claim) else before
            yield Mark(number=int(match["mark"]), claim=said, claim_id=(number, start))
        if _says_something(line):
            before = line


def _sentences(line: str) -> list[tuple[int, int]]:
    """Return where the sentences of a line begin and end; marks after a full stop belong to it."""
    code = [match.span() for match in _SPAN_OR_MARK.finditer(line) if match["mark"] is None]
    ends = [end.end() for end in _SENTENCE_END.finditer(line) if not any(a <= end.start() < b for a, b in code)]
    starts = [0, *ends]
    return list(zip(starts, [*ends, len(line)], strict=True))


def _claim(line: str, sentences: Sequence[tuple[int, int]], at: int) -> tuple[int, str]:
    index = next(index for index, (_, end) in enumerate(sentences) if at < end or end == len(line))
    while index and not _says_something(line[slice(*sentences[index])]):
        index -= 1
    start, end = sentences[index]
    return start, line[start:end]


def _says_something(text: str) -> bool:
    return _WORD.search(_MARKS.sub("", text)) is not None
