"""Keeps citations of shown lines, and marks claims that the lines contradict or that lack a citation."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from agent.citations.citation_fit import MAX_LINES, Doubt, EvidenceFit, Exhibit
from agent.evidence.refs import LONGEST_RANGE, is_within
from agent.ports import CodeSearch
from agent.state import CitationRef, EvidenceRef, to_citation, to_location
from agent.text.citation_markers import CitationMarker, find_markers, format_marker, replace_markers
from agent.text.code_marks import split_spans
from indexer.errors import UnknownPath
from indexer.types import Location

UNSOURCED, UNVERIFIED, CORRECTED = "*(unsourced)*", "*(unverified)*", "*(corrected)*"
Deed = Literal["unsourced", "unread", "read", "corrected"]
_WORDS: Mapping[Deed, str] = {
    "unsourced": UNSOURCED,
    "unread": UNVERIFIED,
    "read": UNVERIFIED,
    "corrected": CORRECTED,
}
_REMARK = re.compile(r" ?\*\((?:unsourced|unverified|corrected)\)\*(?::.*)?")
_MAX_READ = 4_000  # characters that tell a language


def write_legend(answer: str, deeds: Mapping[Deed, int]) -> str:
    """Write a legend of the marks with their counts; empty without marks."""
    told = _read_table()[find_language(answer)]
    return "\n".join(
        f"{word}: {told[deed].format(count=deeds[deed])}" for deed, word in _WORDS.items() if deeds.get(deed)
    )


def find_language(answer: str) -> str:
    """Guess the language of an answer, English by default."""
    prose = f" {' '.join(split_spans(answer[:_MAX_READ])[0].lower().split())} "
    table = _read_table()
    return max(table, key=lambda language: sum(map(prose.count, table[language]["signs"])))


def remove_remarks(answer: str) -> str:
    """Return an answer without the marks and remarks of the check."""
    return _REMARK.sub("", answer).rstrip()


@cache
def _read_table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("legends.toml").read_text(encoding="utf-8"))


MAX_WEIGHED = 200  # citations of one answer; further ones are kept where their lines were shown
_NAME_STEP = 8  # lines: what is shorter than that is named by its own lines


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedAnswer:
    """An answer with matching markers and citations, and the number of dropped citations.

    `places` are the targets of the previous markers, in order; None for a removed one. `doubts`
    says of each how much speaks against it.
    """

    text: str
    citations: list[CitationRef]
    places: Sequence[Location | None]
    doubts: Sequence[Doubt]
    dropped: int


ReadingKey = tuple[str, str, Location | None]
# The lines that show a claim, by a model that read them again; None if it found none that do.
Readings = Mapping[ReadingKey, Location | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedClaim:
    """One marker of an answer, its target (None if that was not read), and how much speaks against it."""

    mark: CitationMarker
    place: Location | None
    doubt: Doubt

    @property
    def key(self) -> ReadingKey:
        """The key of its reading in the cache."""
        return self.mark.sentence, self.mark.words, self.place


@dataclass(frozen=True, kw_only=True, slots=True)
class ExaminedAnswer:
    """An answer with each of its markers as found; `fit` is None if no model wrote it."""

    text: str
    given: Mapping[int, Location]
    claims: Sequence[CitedClaim]
    fit: EvidenceFit | None

    def settle(self, readings: Readings | None = None, *, corrected: int = 0) -> CheckedAnswer:
        """Renumber the citations after a model has reread them; only its verdict moves a mark."""
        read = readings or {}
        places = [read.get(one.key) or one.place for one in self.claims]
        doubts = [
            one.doubt if one.key not in read else Doubt.NONE if read[one.key] else Doubt.CONTRADICTED
            for one in self.claims
        ]
        numbers: dict[Location, int] = {}
        for place in places:
            if place is not None:
                numbers.setdefault(place, len(numbers) + 1)
        marks = [one.mark for one in self.claims]
        shown = {mark.number for mark, place in zip(marks, places, strict=True) if place is not None}
        new = _make_replacements(marks, places, doubts, numbers, by_model=self.fit is not None)
        unverified = [one.key in read for one, text in zip(self.claims, new, strict=True) if UNVERIFIED in text]
        legend = write_legend(
            self.text,
            {
                "unsourced": new.count(UNSOURCED),
                "unread": unverified.count(False),
                "read": unverified.count(True),
                "corrected": corrected,
            },
        )
        return CheckedAnswer(
            text="\n\n".join(filter(None, (replace_markers(self.text, new), legend))),
            citations=[to_citation(mark, at) for at, mark in numbers.items()],
            places=places,
            doubts=doubts,
            dropped=len(self.given.keys() - shown),
        )


async def examine_citations(
    text: str,
    citations: Sequence[CitationRef],
    evidence: Sequence[EvidenceRef | CitationRef],
    code: CodeSearch,
    *,
    by_model: bool = False,
    past: Mapping[Location, str] | None = None,
    asked: str = "",
) -> ExaminedAnswer:
    """Look up every citation at the commit and in the evidence of this turn.

    A citation within lines that were read stays. A model's citation is also compared with its claim: it is doubtful if
    the lines lack names or numbers of the claim, or if other evidence clearly fits better. `past` has the evidence
    about commits and lines of other commits; words that were `asked` may be missing anywhere.
    """
    given = {citation["mark"]: to_location(citation) for citation in citations}
    found = find_markers(text)
    reader = _EvidenceReader(code=code, read=list(dict.fromkeys(map(to_location, evidence))), past=past or {})
    places = [await reader.locate(given.get(mark.number)) for mark in found]
    fit, doubts = None, [Doubt.NONE] * len(found)
    if by_model:
        exhibits = [one for location in reader.read if (one := await reader.load_exhibit(location)) is not None]
        # In a thread: a turn that read much must not hold up the others.
        fit = await asyncio.to_thread(EvidenceFit, exhibits, asked)
        doubts = await asyncio.to_thread(_weigh, fit, found, places)
    parts = zip(found, places, doubts, strict=True)
    return ExaminedAnswer(
        text=text,
        given=given,
        claims=[CitedClaim(mark=mark, place=place, doubt=doubt) for mark, place, doubt in parts],
        fit=fit,
    )


def _weigh(fit: EvidenceFit, found: Sequence[CitationMarker], places: Sequence[Location | None]) -> list[Doubt]:
    """Compare each citation with its claim, up to a limit."""
    beside: dict[tuple[tuple[int, int], str], list[Location]] = {}
    for mark, place in zip(found, places, strict=True):
        if place is not None:
            beside.setdefault((mark.claim_id, mark.words), []).append(place)
    return [
        fit.judge(mark, place, beside[mark.claim_id, mark.words])
        if place is not None and at < MAX_WEIGHED
        else Doubt.NONE
        for at, (mark, place) in enumerate(zip(found, places, strict=True))
    ]


def _make_replacements(
    found: Sequence[CitationMarker],
    places: Sequence[Location | None],
    doubts: Sequence[Doubt],
    numbers: Mapping[Location, int],
    *,
    by_model: bool,
) -> list[str]:
    """Return the replacement of each marker; mark the first of a claim without citations as unsourced."""
    sound = {mark.claim_id for mark, place in zip(found, places, strict=True) if place is not None}
    marked: set[tuple[int, int]] = set()
    new: list[str] = []
    for mark, place, doubt in zip(found, places, doubts, strict=True):
        if place is not None:
            remark = f" {UNVERIFIED}" if doubt is Doubt.CONTRADICTED else ""
            new.append(format_marker(numbers[place]) + remark)
        elif by_model and mark.claim_id not in sound | marked:
            marked.add(mark.claim_id)
            new.append(UNSOURCED)
        else:
            new.append("")
    return new


@dataclass(frozen=True, kw_only=True, slots=True)
class _EvidenceReader:
    """Reads and remembers the lines of the turn at the commit."""

    code: CodeSearch
    read: Sequence[Location]
    past: Mapping[Location, str]
    texts: dict[Location, str | None] = field(default_factory=dict)

    async def locate(self, cited: Location | None) -> Location | None:
        """Return the lines of a marker, as cited or cut to those that were read; None if there are none."""
        if cited is None:
            return None
        is_part = bool(cited.path) and _is_sound(cited) and any(is_within(cited, seen) for seen in self.read)
        is_read = cited in self.read or is_part
        if cited.commit:  # of another commit than the files that can be read here
            return cited if is_read else None
        if is_read and await self._read_text(cited) is not None:
            return cited
        repaired = _repair_location(cited, self.read)
        return repaired if repaired is not None and await self._read_text(repaired) is not None else None

    async def load_exhibit(self, location: Location) -> Exhibit | None:
        """Read lines with the names of the surrounding and contained definitions; None if there are none."""
        if location.commit:
            text = self.past.get(location)
            return Exhibit(location=location, lines=text.split("\n")) if text else None
        if not 1 <= location.start_line <= location.end_line:
            return None
        last = min(location.end_line, location.start_line + MAX_LINES - 1)
        text = await self._read_text(Location(path=location.path, start_line=location.start_line, end_line=last))
        if text is None:
            return None
        names: dict[str, None] = {}
        for line in {*range(location.start_line, last + 1, _NAME_STEP), last}:
            around = await self.code.find_enclosing(Location(path=location.path, start_line=line, end_line=line))
            names |= dict.fromkeys(definition.symbol.qualified_name for definition in around)
        return Exhibit(location=location, lines=text.split("\n"), names=tuple(names))

    async def _read_text(self, cited: Location) -> str | None:
        """Return the cited lines at the commit; None if any is missing."""
        if cited not in self.texts:
            self.texts[cited] = None
            with suppress(UnknownPath):
                passage = await self.code.read(cited.path, cited.start_line, cited.end_line)
                is_whole = (passage.location.start_line, passage.location.end_line) == (
                    cited.start_line,
                    cited.end_line,
                )
                is_empty = passage.location.end_line == 0 and (cited.start_line, cited.end_line) == (1, 1)
                self.texts[cited] = passage.text if is_whole or is_empty else None
        return self.texts[cited]


def _is_sound(cited: Location) -> bool:
    return 1 <= cited.start_line <= cited.end_line < cited.start_line + LONGEST_RANGE


def _repair_location(cited: Location, read: Sequence[Location]) -> Location | None:
    """Cut a citation to its lines that were read, if they form one range; if they form several, to their beginning."""
    if not 1 <= cited.start_line <= cited.end_line:
        return None
    cut = {
        replace(seen, start_line=max(cited.start_line, seen.start_line), end_line=min(cited.end_line, seen.end_line))
        for seen in read
        if seen.path == cited.path or seen.path.endswith(f"/{cited.path}")
    }
    overlaps = [one for one in cut if _is_sound(one)]
    largest = [one for one in overlaps if not any(one != other and is_within(one, other) for other in overlaps)]
    begun = [one for one in largest if one.start_line == cited.start_line]
    only = begun if len(begun) == 1 else largest
    return only[0] if len(only) == 1 else None
