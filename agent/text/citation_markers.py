"""The citation marker `[n]` of an answer: writing, finding and replacing it outside quoted code."""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agent.text.code_marks import CodeBlockScanner, find_outside

MARKER = re.compile(r"\[(?P<mark>\d{1,4})\]")
_MARKER_IN_PROSE = re.compile(rf"(?P<space> ?){MARKER.pattern}(?!\()")  # before a bracket it would be a link
_SENTENCE_END = re.compile(rf"(?<=[.!?])(?:\s*{MARKER.pattern})*\s+(?=[A-Z`*_\"'(\[])")
_WORD = re.compile(r"\w")
_JOINT = re.compile(r" ?[,;]?(?: (?:and|or|as well as|und|oder|et|ou|y|e)| ?&)?", re.IGNORECASE)  # between markers


@dataclass(frozen=True, kw_only=True, slots=True)
class CitationMarker:
    """One marker of an answer: its number, the sentence that it supports, and the number of its claim.

    `words` are those since the previous marker, because one claim can have several.
    """

    number: int
    words: str
    sentence: str
    claim_id: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claim:
    """The claim of the markers up to a position, and its beginning."""

    start: int
    end: int
    text: str
    has_words: bool


def format_marker(number: int) -> str:
    """Write the marker of a citation."""
    return f"[{number}]"


def find_markers(text: str) -> list[CitationMarker]:
    """Return every marker of an answer, in order."""
    markers: list[CitationMarker] = []
    scanner = CodeBlockScanner()
    before = ""
    for number, line in enumerate(text.split("\n")):
        if scanner.take(line):
            continue
        found = list(find_outside(_MARKER_IN_PROSE, line)) if "[" in line else []
        claims = _find_claims(line) if found else []
        ends = [claim.end for claim in claims]
        last, words = -1, ""
        for match in found:
            claim = claims[min(bisect_right(ends, match.start("mark")), len(claims) - 1)]
            sentence = claim.text if claim.has_words else before
            between = line[max(last, claim.start) : match.start()]
            if _WORD.search(between):
                words = between
            elif last <= claim.start:
                words = sentence
            last = match.end()
            markers.append(
                CitationMarker(
                    number=int(match["mark"]), words=words, sentence=sentence, claim_id=(number, claim.start)
                )
            )
        if line and _has_words(line):
            before = line
    return markers


def replace_markers(text: str, new: Sequence[str]) -> str:
    """Replace each marker by a text, in order; an empty one also removes the space before it, and an adjacent "and"."""
    replacements = iter(new)
    scanner = CodeBlockScanner()
    lines: list[str] = []
    for line in text.split("\n"):
        pieces: list[str] = []
        end, before = 0, None
        for found in find_outside(_MARKER_IN_PROSE, line) if not scanner.take(line) and "[" in line else ():
            replacement = next(replacements)
            between = line[end : found.start()]
            is_loose = before is not None and not (before and replacement) and _JOINT.fullmatch(between)
            pieces += ["" if is_loose else between, f"{found['space']}{replacement}" if replacement else ""]
            end, before = found.end(), replacement
        lines.append("".join([*pieces, line[end:]]))
    return "\n".join(lines)


def _find_claims(line: str) -> list[_Claim]:
    """Split a line into sentences; one without words belongs to the sentence before it.

    Markers after a full stop belong to its sentence.
    """
    claims: list[_Claim] = []
    start = 0
    for end in [*(found.end() for found in find_outside(_SENTENCE_END, line)), len(line)]:
        text = line[start:end]
        has_words = _has_words(text)
        if claims and not has_words:
            claims.append(dataclasses.replace(claims[-1], end=end))
        else:
            claims.append(_Claim(start=start, end=end, text=text, has_words=has_words))
        start = end
    return claims


def _has_words(text: str) -> bool:
    return _WORD.search(MARKER.sub("", text)) is not None
