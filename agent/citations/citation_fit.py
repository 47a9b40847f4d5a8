"""Compares a claim with its cited lines, and with all other evidence of the turn."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from agent.citations.claims import (
    STEM,
    condense,
    find_identifiers,
    find_names,
    find_numbers,
    find_odd_numbers,
    find_specifics,
    find_stems,
)
from agent.evidence.refs import is_within
from agent.questions.terms import split_words
from agent.text.citation_markers import CitationMarker
from indexer.types import Location

MAX_LINES = 6_000  # of a turn that are looked at
_LONGEST_LINE = 400
_WINDOW = 10  # lines that say one thing
_MARGIN = 1  # lines that may be missing at either end of a range
_REST_WEIGHT = 0.4  # of words of the sentence that belong to another marker
_NAME_WEIGHT = 1.5
# How much the lines count, their rank among all lines, and the whole exhibit.
_LINES, _RANK, _EXHIBIT = 0.3, 0.3, 0.4
# A fit below the first is worth reading again, below the second it is clear; of several citations of the same words,
# each says only a part of them.
_FITS_ALONE = (0.68, 0.45)
_FITS_BESIDE = (0.45, 0.3)
_MIN_ELSEWHERE = 2  # that the best lines say, for others to be clearly wrong: more than one common word
_UNHEARD_SHARE = 0.6  # of the words of a claim, where its lines have so few of the others that it is read again

Weights = Mapping[str, float]
Terms = frozenset[str]  # beginnings of words; names with a `#` before them


class Doubt(IntEnum):
    """The doubt about a citation: none, enough to reread it, or missing names and numbers."""

    NONE = 0
    UNSURE = 1
    CONTRADICTED = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Exhibit:
    """Lines that were shown or read in the turn, with the names of the surrounding and contained definitions.

    The lines of a commit are its message, with its author and date.
    """

    location: Location
    lines: Sequence[str]
    names: Sequence[str] = ()

    @property
    def title(self) -> str:
        """Words that count as part of every line."""
        return " ".join([self.location.path, self.location.commit, *self.names])


@dataclass(frozen=True, kw_only=True, slots=True)
class _KnownExhibit:
    """An exhibit with the terms of its title, of each line, and of all together."""

    exhibit: Exhibit
    heading: Terms
    lines: Sequence[Terms]
    all: Terms
    text: str

    @classmethod
    def read(cls, exhibit: Exhibit, most: int) -> _KnownExhibit:
        """Read the title and so many lines."""
        heading = find_line_terms(exhibit.title)
        lines = [find_line_terms(line[:_LONGEST_LINE]) for line in exhibit.lines[:most]]
        text = condense(_write(replace(exhibit, lines=exhibit.lines[:most])))
        return cls(exhibit=exhibit, heading=heading, lines=lines, all=heading.union(*lines), text=text)

    def find_lines(self, cited: Location) -> range | None:
        """Return the indexes of the cited and neighbouring lines; None if any is missing."""
        at = self.exhibit.location
        if cited == at:
            return range(len(self.lines)) or None
        if not is_within(cited, at):
            return None
        first = max(0, cited.start_line - at.start_line - _MARGIN)
        return range(first, min(len(self.lines), cited.end_line - at.start_line + 1 + _MARGIN)) or None

    def cut(self, lines: range) -> Exhibit:
        """Return some of the lines as a separate exhibit; those of a commit keep it."""
        whole = self.exhibit.location
        first = whole.start_line + lines.start
        at = replace(whole, start_line=first, end_line=first + len(lines) - 1) if whole.path else whole
        return replace(self.exhibit, location=at, lines=self.exhibit.lines[lines.start : lines.stop])

    def weigh_windows(self, weights: Weights, lines: range) -> Iterator[float]:
        """Weigh the words of a claim in every window of `_WINDOW` lines; the title counts."""
        value = sum(weights[term] for term in self.heading & weights.keys())
        size = min(_WINDOW, len(lines))
        said = [line & weights.keys() - self.heading for line in self.lines[lines.start : lines.stop]]
        held: Counter[str] = Counter()
        for at, terms in enumerate(said):
            value += sum(weights[term] for term in terms if not held[term])
            held.update(terms)
            if at >= size:
                held.subtract(said[at - size])
                value -= sum(weights[term] for term in said[at - size] if not held[term])
            if at >= size - 1:
                yield value


class EvidenceFit:
    """The evidence of one turn, compared with its claims; the names in `asked` may be missing."""

    def __init__(self, exhibits: Iterable[Exhibit], asked: str = "") -> None:
        self._exhibits: list[_KnownExhibit] = []
        left = MAX_LINES
        for exhibit in exhibits:
            if left > 0:
                self._exhibits.append(_KnownExhibit.read(exhibit, left))
                left -= len(self._exhibits[-1].lines)
        self._frequency = Counter(term for one in self._exhibits for term in one.all)
        self._known = "\n".join([condense(asked), *(one.text for one in self._exhibits)])

    def judge(self, claim: CitationMarker, cited: Location, beside: Sequence[Location]) -> Doubt:
        """Return how much speaks against a citation; `beside` are all citations of the same words."""
        quotes = [one for place in {cited, *beside} if (one := self.quote(place)) is not None]
        if not quotes:
            return Doubt.NONE  # its lines are not known here
        unsure, clear = _FITS_ALONE if len(beside) <= 1 else _FITS_BESIDE
        fit = self.rate(claim, cited)
        said = "\n".join(map(_write, quotes))
        text, specifics, stems = condense(said), find_specifics(claim.words), find_stems(claim.words)
        missing = {each for each in specifics if each not in text}
        around = "\n".join(one.text for one in self._exhibits if any(map(one.find_lines, beside or [cited])))
        odd_numbers = find_odd_numbers(claim.words, said)
        if (
            fit < clear
            or (missing == specifics and any(each not in around for each in missing))
            or any(each not in self._known for each in missing)
            or (odd_numbers and any(find_numbers("\n".join(one.lines)) for one in quotes))
        ):
            return Doubt.CONTRADICTED
        is_unheard = sum(stem not in text for stem in stems) >= _UNHEARD_SHARE * len(stems)
        return Doubt.UNSURE if fit < unsure or missing or odd_numbers or is_unheard else Doubt.NONE

    def quote(self, place: Location) -> Exhibit | None:
        """Quote some lines and their neighbours that were read, with the names around them."""
        found = ((one, lines) for one in self._exhibits if (lines := one.find_lines(place)) is not None)
        return next((one.cut(lines) for one, lines in found), None)

    def find_best_lines(self, claim: CitationMarker, within: Location | None = None) -> Location | None:
        """Return the lines that best match a claim, among all or within some; for a commit, its message."""
        weights = self._weigh(claim)
        best, found = 0.0, None
        for one in self._exhibits:
            lines = range(len(one.lines)) if within is None else one.find_lines(within) or range(0)
            for at, value in enumerate(one.weigh_windows(weights, lines), lines.start):
                if value > best:
                    best, found = value, one.cut(range(at, at + min(_WINDOW, len(lines)))).location
        return found

    def rate(self, claim: CitationMarker, cited: Location) -> float:
        """Rate how well lines fit a claim: 1 if nothing else fits better, or if the words cannot tell."""
        weights = self._weigh(claim)
        holding = [(at, lines) for at, one in enumerate(self._exhibits) if (lines := one.find_lines(cited)) is not None]
        values = [list(one.weigh_windows(weights, range(len(one.lines)))) for one in self._exhibits]
        ranked = sorted(value for windows in values for value in windows)
        if not holding or not ranked or ranked[-1] <= _MIN_ELSEWHERE:
            return 1.0
        return max(
            _rate_value(max(self._exhibits[at].weigh_windows(weights, lines)), max(values[at]), ranked)
            for at, lines in holding
        )

    def _weigh(self, claim: CitationMarker) -> Weights:
        """Weight the shown terms by how few exhibits contain them."""
        count = len(self._exhibits)
        own = find_claim_terms(claim.words)
        weights: dict[str, float] = {}
        for term in own | find_claim_terms(claim.sentence):
            if said := self._frequency[term]:
                rarity = math.log(1 + (count - said + 0.5) / (said + 0.5))
                weights[term] = rarity * (_NAME_WEIGHT if term[0] == "#" else 1) * (1 if term in own else _REST_WEIGHT)
        return weights


def _rate_value(own: float, of_exhibit: float, ranked: Sequence[float]) -> float:
    best = ranked[-1]
    rank = (bisect_left(ranked, own - 1e-9) + bisect_right(ranked, own + 1e-9)) / (2 * len(ranked))
    return _LINES * own / best + _RANK * rank + _EXHIBIT * of_exhibit / best


def _write(exhibit: Exhibit) -> str:
    return "\n".join([exhibit.title, *exhibit.lines])


def find_claim_terms(text: str) -> Terms:
    """Return the terms of a sentence: its meaningful words and its names."""
    return find_stems(text) | {f"#{name}" for name in find_names(text)}


@lru_cache(maxsize=1 << 13)
def find_line_terms(line: str) -> Terms:
    """Return the terms of a line of code."""
    return frozenset({*(word[:STEM] for word in split_words(line)), *(f"#{name}" for name in find_identifiers(line))})
