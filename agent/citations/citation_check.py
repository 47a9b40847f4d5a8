"""Keeps the citations of lines that were shown, repairs others by a name, and marks the claims that keep none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from agent.citations.citation_fit import MAX_LINES, EvidenceFit, Exhibit
from agent.citations.claims import Claim, find_names
from agent.evidence.refs import LONGEST_RANGE, is_within
from agent.ports import CodeSearch
from agent.state import CitationRef, EvidenceRef, to_citation, to_location
from agent.text.citation_markers import CitationMarker, find_markers, format_marker, replace_markers
from indexer.errors import UnknownPath
from indexer.types import Location

UNSOURCED = "*(unsourced)*"
LEGEND = f"{UNSOURCED}: nothing that was read for this answer says so."
MAX_WEIGHED = 200  # citations of one answer; further ones are kept where their lines were shown
_LEAST_FIT = 0.68
_LEAST_FIT_OF_SEVERAL = 0.45  # each of several citations of the same words says a part of them
_NAME_STEP = 8  # lines: what is shorter than that is named by its own lines


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedAnswer:
    """An answer whose markers and citations agree, and how many citations were kept, repaired and dropped.

    `places` are where the markers lead that were there before, in their order; None for one that was taken out.
    """

    text: str
    citations: list[CitationRef]
    places: Sequence[Location | None]
    kept: int
    repaired: int
    dropped: int


async def verify_citations(
    text: str,
    citations: Sequence[CitationRef],
    evidence: Sequence[EvidenceRef | CitationRef],
    code: CodeSearch,
    *,
    by_model: bool = False,
) -> CheckedAnswer:
    """Check every citation against the commit and against what was read in this turn, and renumber them.

    What a model cites is also weighed against all that it was shown. Where something else clearly fits the claim
    better, the one place that has all names of the claim is cited instead, or else the claim is marked as unsourced.
    """
    given = {citation["mark"]: to_location(citation) for citation in citations}
    found = find_markers(text)
    claims = _read_claims(found)
    read = list(dict.fromkeys(map(to_location, evidence)))
    examiner = await _Examiner.open(code, read, claims if by_model else None)
    beside = Counter((mark.claim_id, mark.words) for mark in found)
    locations = [
        await examiner.check_citation(
            given.get(mark.number), claim, is_one_of_several=beside[mark.claim_id, mark.words] > 1
        )
        for mark, claim in zip(found, claims, strict=True)
    ]
    numbers: dict[Location, int] = {}
    for location in locations:
        if location is not None:
            numbers.setdefault(location, len(numbers) + 1)
    shown = {mark.number: location for mark, location in zip(found, locations, strict=True) if location is not None}
    kept = sum(given[number] == location for number, location in shown.items() if number in given)
    new = replace_markers(text, _make_replacements(found, locations, numbers, by_model=by_model))
    return CheckedAnswer(
        text=f"{new}\n\n{LEGEND}" if UNSOURCED in new and UNSOURCED not in text else new,
        citations=[to_citation(mark, at) for at, mark in numbers.items()],
        places=locations,
        kept=kept,
        repaired=len(shown) - kept,
        dropped=len(given.keys() - shown.keys()),
    )


def _read_claims(found: Sequence[CitationMarker]) -> list[Claim]:
    """Return what each marker stands for; the claim of the marker before belongs to what it speaks of."""
    before = ["", *(mark.claim for mark in found)]
    return [
        Claim(words=mark.words, sentence=mark.claim, context=context)
        for mark, context in zip(found, before, strict=False)
    ]


def _make_replacements(
    found: Sequence[CitationMarker],
    locations: Sequence[Location | None],
    numbers: Mapping[Location, int],
    *,
    by_model: bool,
) -> list[str]:
    """Return what replaces each marker; the first of a claim that keeps none is marked as unsourced."""
    sound = {mark.claim_id for mark, location in zip(found, locations, strict=True) if location is not None}
    marked: set[tuple[int, int]] = set()
    new: list[str] = []
    for mark, location in zip(found, locations, strict=True):
        if location is not None:
            new.append(format_marker(numbers[location]))
        elif by_model and mark.claim_id not in sound | marked:
            marked.add(mark.claim_id)
            new.append(UNSOURCED)
        else:
            new.append("")
    return new


@dataclass(frozen=True, kw_only=True, slots=True)
class _Examiner:
    """Looks citations up at the commit, and remembers what it has read."""

    code: CodeSearch
    read: Sequence[Location]
    fit: EvidenceFit | None  # None where no model wrote, so that nothing is weighed
    texts: dict[Location, str | None] = field(default_factory=dict)
    judged: dict[tuple[Location | None, Claim], Location | None] = field(default_factory=dict)

    @classmethod
    async def open(cls, code: CodeSearch, read: Sequence[Location], claims: Sequence[Claim] | None) -> _Examiner:
        """Read the evidence, as far as it is weighed: against claims of a model, or not at all."""
        examiner = cls(code=code, read=read, fit=None)
        if claims is None:
            return examiner
        exhibits = [one for location in read if (one := await examiner._load_exhibit(location)) is not None]
        # In a thread, as weighing is: a turn that read much must not hold up the others.
        fit = await asyncio.to_thread(EvidenceFit, exhibits, claims)
        return cls(code=code, read=read, fit=fit, texts=examiner.texts)

    async def check_citation(
        self, cited: Location | None, claim: Claim, *, is_one_of_several: bool = False
    ) -> Location | None:
        """Return the lines to show for a marker: as cited, or repaired; None when the citation does not hold."""
        if (cited, claim) not in self.judged:
            least = _LEAST_FIT_OF_SEVERAL if is_one_of_several else _LEAST_FIT
            self.judged[cited, claim] = await self._judge(cited, claim, least)
        return self.judged[cited, claim]

    async def _judge(self, cited: Location | None, claim: Claim, least: float) -> Location | None:
        if cited is not None and cited.commit:
            # Of another commit than the files that can be read here: what was shown of it was read there.
            is_part = bool(cited.path) and _is_sound(cited) and any(is_within(cited, seen) for seen in self.read)
            return cited if cited in self.read or is_part else None
        place = await self._locate_citation(cited) if cited is not None else None
        if self.fit is None or cited is None:
            return place
        if place is not None and (
            len(self.judged) >= MAX_WEIGHED
            or (self.fit.knows_names(claim) and await asyncio.to_thread(self.fit.rate, claim, place) >= least)
        ):
            return place
        # A name in the sentence may tell which lines were meant; a path that is not there tells nothing.
        return _find_only_place(self.fit.find_holders(find_names(claim.sentence)))

    async def _locate_citation(self, cited: Location) -> Location | None:
        is_shown = cited in self.read or (_is_sound(cited) and any(is_within(cited, seen) for seen in self.read))
        if is_shown and await self._read_text(cited) is not None:
            return cited
        repaired = _repair_location(cited, self.read)
        return repaired if repaired is not None and await self._read_text(repaired) is not None else None

    async def _load_exhibit(self, location: Location) -> Exhibit | None:
        """Read lines with the names of the definitions that they are part of or hold; None where there are none."""
        if location.commit or not 1 <= location.start_line <= location.end_line:
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
        """Return the cited lines as they are at the commit; None where they are not all there."""
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


def _find_only_place(places: Sequence[Location]) -> Location | None:
    """Return the one of some places that could be meant: what lies around another says no more."""
    inner = [one for one in places if not any(one != other and is_within(other, one) for other in places)]
    return inner[0] if len(inner) == 1 and _is_sound(inner[0]) else None


def _is_sound(cited: Location) -> bool:
    return 1 <= cited.start_line <= cited.end_line < cited.start_line + LONGEST_RANGE


def _repair_location(cited: Location, read: Sequence[Location]) -> Location | None:
    """Give a citation the one meaning that it can have among what was read; None when there are several."""
    paths = {seen.path for seen in read if seen.path == cited.path or seen.path.endswith(f"/{cited.path}")}
    if len(paths) != 1 or cited.start_line < 1 or cited.end_line < cited.start_line:
        return None
    path = next(iter(paths))
    overlaps = {
        Location(
            path=path,
            start_line=max(cited.start_line, seen.start_line),
            end_line=min(cited.end_line, seen.end_line),
        )
        for seen in read
        if seen.path == path and seen.start_line <= cited.end_line and cited.start_line <= seen.end_line
    }
    largest = [one for one in overlaps if not any(one != other and is_within(one, other) for other in overlaps)]
    return largest[0] if len(largest) == 1 and _is_sound(largest[0]) else None
