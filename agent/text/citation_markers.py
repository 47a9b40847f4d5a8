"""The citation marker `[n]` of an answer: written, found and rewritten, but never in quoted code."""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.text.code_spans import find_outside

_FENCE = re.compile(r" {0,3}(`{3,}(?!`)|~{3,}(?!~))(?=[^`\n]*$)")
MARKER = re.compile(r"\[(?P<mark>\d{1,4})\]")
_MARKER_IN_PROSE = re.compile(rf"(?P<space> ?){MARKER.pattern}(?!\()")  # before a bracket it would be a link
_SENTENCE_END = re.compile(rf"(?<=[.!?])(?:\s*{MARKER.pattern})*\s+(?=[A-Z`*_\"'(\[])")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True, slots=True)
class CitationMarker:
    """One marker of an answer: its number, the claim that it supports, and which claim of the answer that is."""

    number: int
    claim: str
    claim_id: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claim:
    """What marks up to a place stand for, and where that begins."""

    start: int
    end: int
    text: str
    says_something: bool


class CodeBlockScanner:
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


def format_marker(number: int) -> str:
    """Write the marker of a citation."""
    return f"[{number}]"


def find_markers(text: str) -> list[CitationMarker]:
    """Return every marker of an answer, in order."""
    return list(_parse_markers(text))


def replace_markers(text: str, new: Sequence[str]) -> str:
    """Replace each marker by a text, in order; an empty one also takes the space before the marker."""
    following = iter(new)

    def put(found: re.Match[str]) -> str:
        text = next(following)
        return f"{found['space']}{text}" if text else ""

    return _rewrite(text, put)


def _rewrite(text: str, put: Callable[[re.Match[str]], str]) -> str:
    fences = CodeBlockScanner()
    return "\n".join(line if fences.take(line) or "[" not in line else _put_all(line, put) for line in text.split("\n"))


def _put_all(line: str, put: Callable[[re.Match[str]], str]) -> str:
    pieces: list[str] = []
    end = 0
    for found in find_outside(_MARKER_IN_PROSE, line):
        pieces += [line[end : found.start()], put(found)]
        end = found.end()
    return "".join([*pieces, line[end:]])


def _parse_markers(text: str) -> Iterator[CitationMarker]:
    fences = CodeBlockScanner()
    before = ""
    for number, line in enumerate(text.split("\n")):
        if fences.take(line):
            continue
        found = list(find_outside(_MARKER_IN_PROSE, line)) if "[" in line else []
        claims = _find_claims(line) if found else []
        ends = [claim.end for claim in claims]
        for match in found:
            claim = claims[min(bisect_right(ends, match.start("mark")), len(claims) - 1)]
            said = claim.text if claim.says_something else before
            yield CitationMarker(number=int(match["mark"]), claim=said, claim_id=(number, claim.start))
        if line and _has_words(line):
            before = line


def _find_claims(line: str) -> list[_Claim]:
    """Return what each sentence of a line says, or the one before it if it says nothing.

    Marks after a full stop belong to its sentence.
    """
    claims: list[_Claim] = []
    start = 0
    for end in [*(found.end() for found in find_outside(_SENTENCE_END, line)), len(line)]:
        text = line[start:end]
        says_something = _has_words(text)
        if claims and not says_something:
            claims.append(dataclasses.replace(claims[-1], end=end))
        else:
            claims.append(_Claim(start=start, end=end, text=text, says_something=says_something))
        start = end
    return claims


def _has_words(text: str) -> bool:
    return _WORD.search(MARKER.sub("", text)) is not None
