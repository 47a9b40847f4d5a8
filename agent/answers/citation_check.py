"""Keeps the citations whose lines name what the sentence claims, repairs others where it can, and drops the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from agent.evidence.refs import LONGEST_RANGE, is_within
from agent.ports import SourceFiles
from agent.questions.mentions import is_code_like
from agent.questions.terms import find_content_terms, match_terms
from agent.state import CitationRef, EvidenceRef, to_citation, to_location
from agent.text.citation_markers import MARKER, CitationMarker, find_markers, format_marker, replace_markers
from agent.text.code_spans import split_spans
from indexer.errors import UnknownPath
from indexer.text.languages import LANGUAGES
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Location

UNVERIFIED = "*(unverified)*"

_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_WORD = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d]\w*)*(?:\(\))?")
_PATH = compile_pattern(r"[\w.@+-]*(?:/[\w.@+-]+)+|[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,5}")
# Words that stand in code spans and prove nothing, because they are everywhere.
_COMMON = frozenset(
    """def class return self this none null true false import from function const let var public private static void int
    str string bool the and for with not new async await if else try except raise lambda list dict""".split()
)
# Endings that are members more often than files: `message.text`, `self.conf`. Another dotted name is one of code.
_MEMBERS = frozenset(
    """bat cmd conf csv cu dockerfile fs graphql gql inl j2 jinja less m markdown mm plist pm profile properties
    props r rake ru sc targets text""".split()
)
_FILE_ENDINGS = frozenset(
    ending for language in LANGUAGES for ending in (*language.endings, *language.shared_endings)
) - _MEMBERS | {"lock", "mod"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedAnswer:
    """An answer whose markers and citations agree, and how many citations were dropped."""

    text: str
    citations: list[CitationRef]
    dropped: int


async def verify_citations(
    text: str,
    citations: Sequence[CitationRef],
    evidence: Sequence[EvidenceRef | CitationRef],
    code: SourceFiles,
    *,
    by_model: bool = False,
) -> CheckedAnswer:
    """Check every citation against the commit and against what was read in this turn, and renumber them.

    What a model wrote is also compared with the lines: they have to contain something that its sentence names.
    Otherwise the one place among the evidence that does is cited instead, or the claim is marked as unverified.
    """
    examiner = _Examiner(code=code, read=list(dict.fromkeys(map(to_location, evidence))))
    given = {citation["mark"]: to_location(citation) for citation in citations}
    found = find_markers(text)
    locations = [await examiner.check_citation(given.get(mark.number), mark, by_model=by_model) for mark in found]
    numbers: dict[Location, int] = {}
    for location in locations:
        if location is not None:
            numbers.setdefault(location, len(numbers) + 1)
    kept = [to_citation(mark, at) for at, mark in numbers.items()]
    good = {mark.number for mark, location in zip(found, locations, strict=True) if location is not None}
    return CheckedAnswer(
        text=replace_markers(text, _make_replacements(found, locations, numbers, by_model=by_model)),
        citations=kept,
        dropped=len(given.keys() - good),
    )


def _make_replacements(
    found: Sequence[CitationMarker],
    locations: Sequence[Location | None],
    numbers: Mapping[Location, int],
    *,
    by_model: bool,
) -> list[str]:
    """Return what replaces each marker; the first of a claim that keeps none is marked as unverified."""
    sound = {mark.claim_id for mark, location in zip(found, locations, strict=True) if location is not None}
    marked: set[tuple[int, int]] = set()
    new: list[str] = []
    for mark, location in zip(found, locations, strict=True):
        if location is not None:
            new.append(format_marker(numbers[location]))
        elif by_model and mark.claim_id not in sound | marked:
            marked.add(mark.claim_id)
            new.append(UNVERIFIED)
        else:
            new.append("")
    return new


@dataclass(frozen=True, kw_only=True, slots=True)
class _Examiner:
    """Looks citations up at the commit, and remembers what it has read."""

    code: SourceFiles
    read: Sequence[Location]
    texts: dict[Location, str | None] = field(default_factory=dict)
    judged: dict[tuple[Location | None, str], Location | None] = field(default_factory=dict)

    async def check_citation(self, cited: Location | None, mark: CitationMarker, *, by_model: bool) -> Location | None:
        """Return the lines to show for a marker: as cited, or repaired; None when the citation does not hold."""
        if (cited, mark.claim) not in self.judged:
            self.judged[cited, mark.claim] = await self._judge(cited, mark, by_model=by_model)
        return self.judged[cited, mark.claim]

    async def _judge(self, cited: Location | None, mark: CitationMarker, *, by_model: bool) -> Location | None:
        if cited is not None and cited.commit:
            return cited if cited in self.read else None  # of another commit than the files that can be read here
        place = await self._locate_citation(cited) if cited is not None else None
        if not by_model or cited is None:
            return place
        claim = read_claim(mark.claim)
        if place is not None and claim.is_supported_by(await self._read_text(place) or "", place.path):
            return place
        # A name in the sentence may tell which lines were meant; a path that is not there tells nothing.
        return await self._find_only_place(claim) if claim.names else None

    async def _locate_citation(self, cited: Location) -> Location | None:
        if (
            _is_sound(cited)
            and any(is_within(cited, seen) for seen in self.read)
            and await self._read_text(cited) is not None
        ):
            return cited
        repaired = _repair_location(cited, self.read)
        return repaired if repaired is not None and await self._read_text(repaired) is not None else None

    async def _find_only_place(self, claim: Claim) -> Location | None:
        """Return the one place that was read and contains all that the claim names."""
        places: list[Location] = []
        for location in self.read:
            text = await self._read_text(location) if _is_sound(location) else None
            if text is not None and claim.is_fully_supported_by(text):
                places.append(location)
        inner = [one for one in places if not any(one != other and is_within(other, one) for other in places)]
        return inner[0] if len(inner) == 1 else None

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
                self.texts[cited] = passage.text if is_whole else None
        return self.texts[cited]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The names in a sentence, the files, and its words that carry meaning, all lower-case."""

    names: frozenset[str]
    paths: frozenset[str]
    terms: frozenset[str]

    def is_supported_by(self, text: str, path: str) -> bool:
        """Whether lines of the file at `path` contain one of the names; without names, one of the words or the file."""
        if self.names:
            return bool(self.names & _find_identifiers(text))
        ends = {f"/{named.lstrip('./')}" for named in self.paths}
        is_named = path.lower() in self.paths or path.lower().endswith(tuple(ends))
        return is_named or bool(match_terms(f"{path} {text}", self.terms))

    def is_fully_supported_by(self, text: str) -> bool:
        """Whether lines contain every one of the names."""
        return self.names <= _find_identifiers(text)


def read_claim(sentence: str) -> Claim:
    """Find what a sentence names."""
    bare = MARKER.sub(" ", sentence)
    prose, spans = split_spans(bare)
    paths = {found for span in spans for found in _PATH.findall(span) if "/" in found or _PATH.fullmatch(span.strip())}
    paths |= {word for word in _PATH.findall(prose) if "/" in word}
    quoted = _PATH.sub(lambda found: " " if found[0] in paths else found[0], " ".join(spans))
    words = [word[0] for word in _WORD.finditer(prose) if is_code_like(word[0]) and word[0] not in paths]
    dotted = {path for path in paths if "/" not in path}  # `Session.send` looks like a file
    return Claim(
        names=_find_identifiers(" ".join([quoted, *words]))
        | frozenset(ending for path in dotted if (ending := path.rpartition(".")[2].lower()) not in _FILE_ENDINGS),
        paths=frozenset(path.lower() for path in paths),
        terms=find_content_terms(bare),
    )


def _find_identifiers(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _IDENTIFIER.findall(text)) - _COMMON
