"""Tells whether a claim and its cited lines are at odds, beside everything else that was shown in the turn."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

from agent.citations.claims import (
    Claim,
    condense,
    find_claimed_numbers,
    find_identifiers,
    find_names,
    find_numbers,
    find_qualified_names,
    find_specifics,
)
from agent.evidence.refs import is_within
from agent.questions.terms import is_content_word, split_words
from agent.text.citation_markers import MARKER
from agent.text.code_spans import split_spans
from indexer.types import Location

MAX_LINES = 6_000  # of a turn that are looked at
_LONGEST_LINE = 400
_WINDOW = 10  # lines that say one thing
_MARGIN = 1  # lines that may be missing at either end of a range
_REST_WEIGHT = 0.4  # of words of the sentence that belong to another marker
_HEADING_WEIGHT = 0.7  # of words that stand in the path or the name of a definition alone
# How much the lines, their rank among all lines, the whole exhibit, and the claim before count.
_LINES, _RANK, _EXHIBIT, _CONTEXT = 0.24, 0.36, 0.24, 0.16

# A fit below the first is worth reading again, below the second it is clear; of several citations of the same words,
# each says only a part of them.
_FITS_ALONE = (0.68, 0.5)
_FITS_BESIDE = (0.45, 0.3)

Weights = Mapping[str, float]
MAX_QUOTES = 200  # of one answer
_LONGEST_QUOTE = 100
_STEM = 4  # letters by which a word is known, in whatever form and language
# How much a kind of term counts beside a word.
_NAME_WEIGHT = 1.5
_QUOTE_WEIGHT = 1.5
_PAIR_WEIGHT = 0.5
# Beginnings of words, and of two words side by side with a space between; names with a `#` before them, those that are
# defined here with `#=`, and what a sentence quotes word for word with a backtick.
Terms = frozenset[str]


class Doubt(IntEnum):
    """How much speaks against a citation: nothing, enough to read it again, or names and numbers that are not there."""

    NONE = 0
    UNSURE = 1
    CONTRADICTED = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Exhibit:
    """Lines that were shown or read in the turn, and the names of the definitions that they are part of or hold.

    The lines of a commit are its message, with who wrote it and when.
    """

    location: Location
    lines: Sequence[str]
    names: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _KnownExhibit:
    """The terms of an exhibit: of its heading, of each line, and of both together."""

    exhibit: Exhibit
    title: str
    heading: Terms
    lines: Sequence[Terms]
    all: Terms

    @classmethod
    def read(cls, exhibit: Exhibit, most: int, quotes: Sequence[str]) -> _KnownExhibit:
        """Read the path, the names, and so many lines with what is quoted of them."""
        title = " ".join([exhibit.location.path, exhibit.location.commit, *exhibit.names])
        heading = find_line_terms(title) | find_definition_terms(exhibit.names)
        texts = [line[:_LONGEST_LINE] for line in exhibit.lines[:most]]
        lines = [find_line_terms(text) | match_quotes(text, quotes) for text in texts]
        return cls(
            exhibit=exhibit,
            title=title,
            heading=heading,
            lines=lines,
            all=heading.union(*lines),
        )

    def find_lines(self, cited: Location) -> range | None:
        """Return the indexes of the cited lines and of those beside them; None where they are not all here."""
        at = self.exhibit.location
        if cited == at:
            return range(len(self.lines)) or None
        if not is_within(cited, at):
            return None
        first = max(0, cited.start_line - at.start_line - _MARGIN)
        found = range(first, min(len(self.lines), cited.end_line - at.start_line + 1 + _MARGIN))
        return found or None


class EvidenceFit:
    """The evidence of one turn, against which its citations are weighed; `claims` are those that may quote of it."""

    def __init__(self, exhibits: Iterable[Exhibit], claims: Iterable[Claim] = ()) -> None:
        quotes = list(dict.fromkeys(quote for claim in claims for quote in find_quotes(claim.sentence)))[:MAX_QUOTES]
        self._exhibits: list[_KnownExhibit] = []
        left = MAX_LINES
        for exhibit in exhibits:
            if left > 0:
                self._exhibits.append(_KnownExhibit.read(exhibit, left, quotes))
                left -= len(self._exhibits[-1].lines)
        self._frequency = Counter(term for one in self._exhibits for term in one.all)
        self._condensed = [
            condense("\n".join([one.title, *one.exhibit.lines[: len(one.lines)]])) for one in self._exhibits
        ]

    def judge(self, claim: Claim, cited: Location, beside: Sequence[Location]) -> Doubt:
        """Return how much speaks against a citation; `beside` are all that the same words cite."""
        unsure, clear = _FITS_ALONE if len(beside) <= 1 else _FITS_BESIDE
        said = self._read_all([cited, *beside])
        if not said:
            return Doubt.NONE  # its lines are not known here
        fit = self.rate(claim, cited)
        specifics, text = find_specifics(claim.words), condense(said)
        missing = {each for each in specifics if each not in text}
        odd_numbers = find_claimed_numbers(claim.words) - find_numbers(said)
        is_contradicted = (
            fit < clear
            or (bool(specifics) and missing == specifics)
            or any(not any(each in known for known in self._condensed) for each in missing)
            or (bool(odd_numbers) and bool(find_numbers(self._read_all([cited, *beside], titled=False))))
        )
        if is_contradicted:
            return Doubt.CONTRADICTED
        return Doubt.UNSURE if fit < unsure or missing or odd_numbers else Doubt.NONE

    def quote(self, place: Location) -> Exhibit | None:
        """Return some lines, and those beside them that were read too, with the names around them."""
        for one in self._exhibits:
            if (lines := one.find_lines(place)) is not None:
                whole = one.exhibit.location
                first = whole.start_line + lines.start
                at = replace(whole, start_line=first, end_line=first + len(lines) - 1) if whole.path else whole
                return replace(one.exhibit, location=at, lines=one.exhibit.lines[lines.start : lines.stop])
        return None

    def find_best_lines(self, claim: Claim, within: Location | None = None) -> Location | None:
        """Return the lines that say most of a claim, of all or within some; of a commit its message."""
        weights = self._weigh(claim)
        best, found = 0.0, None
        for one in self._exhibits:
            lines = range(len(one.lines)) if within is None else one.find_lines(within)
            if not lines:
                continue
            size = min(_WINDOW, len(lines))
            for at, value in enumerate(_weigh_windows(one, weights, size, lines), lines.start):
                if value > best:
                    best, found = value, (one.exhibit.location, at, size)
        if found is None:
            return None
        whole, at, size = found
        first = whole.start_line + at
        return replace(whole, start_line=first, end_line=first + size - 1) if whole.path else whole

    def _read_all(self, places: Sequence[Location], *, titled: bool = True) -> str:
        """Return what stands in some places, with what their exhibits are called."""
        found = [
            [one.title * titled, *one.exhibit.lines[lines.start : lines.stop]]
            for place in places
            for one in self._exhibits
            if (lines := one.find_lines(place)) is not None
        ]
        return "\n".join(text for texts in found for text in texts)

    def rate(self, claim: Claim, cited: Location) -> float:
        """Return how well lines fit a claim: 1 where nothing shown fits better, or where the words cannot tell."""
        weights = self._weigh(claim)
        holding = [(one, lines) for one in self._exhibits if (lines := one.find_lines(cited)) is not None]
        if not weights or not holding:
            return 1.0
        return max(self._rate_lines(one, lines, weights, claim) for one, lines in holding)

    def _rate_lines(self, one: _KnownExhibit, lines: range, weights: Weights, claim: Claim) -> float:
        size = min(_WINDOW, len(lines))
        own = max(_weigh_windows(one, weights, size, lines))
        by_exhibit = {id(each): list(_weigh_windows(each, weights, size)) for each in self._exhibits}
        values = sorted(value for windows in by_exhibit.values() for value in windows)
        best = values[-1]
        if best <= 0:
            return 1.0
        rank = (bisect_left(values, own - 1e-9) + bisect_right(values, own + 1e-9)) / (2 * len(values))
        return (
            _LINES * own / best
            + _RANK * rank
            + _EXHIBIT * max(by_exhibit[id(one)]) / best
            + _CONTEXT * self._rate_context(one, claim)
        )

    def _rate_context(self, one: _KnownExhibit, claim: Claim) -> float:
        weights = self._weigh_terms(find_claim_terms(f"{claim.context} {claim.sentence}"))
        sums = [sum(weights[term] for term in weights.keys() & each.all) for each in self._exhibits]
        best = max(sums)
        return sums[self._exhibits.index(one)] / best if best > 0 else 1.0

    def _weigh(self, claim: Claim) -> Weights:
        weights = self._weigh_terms(find_claim_terms(claim.words))
        for term, weight in self._weigh_terms(find_claim_terms(claim.sentence)).items():
            weights.setdefault(term, _REST_WEIGHT * weight)
        return weights

    def _weigh_terms(self, terms: Iterable[str]) -> dict[str, float]:
        """Weigh what was shown anywhere by how few exhibits say it."""
        count = len(self._exhibits)
        weights: dict[str, float] = {}
        for term in terms:
            if said := self._frequency[term]:
                rarity = math.log(1 + (count - said + 0.5) / (said + 0.5))
                weights[term] = rarity * get_term_weight(term)
        return weights


def _weigh_windows(one: _KnownExhibit, weights: Weights, size: int, lines: range = range(MAX_LINES)) -> Iterator[float]:
    """Return what so many lines say of a claim, for each line of the exhibit that they can begin at."""
    said = [line & weights.keys() for line in one.lines[lines.start : lines.stop]]
    shares = {term: weight * (1 - _HEADING_WEIGHT * (term in one.heading)) for term, weight in weights.items()}
    value = _HEADING_WEIGHT * sum(weights[term] for term in one.heading & weights.keys())
    held: Counter[str] = Counter()
    for at in range(max(size, len(said))):
        for term in said[at] if at < len(said) else ():
            held[term] += 1
            value += shares[term] if held[term] == 1 else 0
        for term in said[at - size] if at >= size else ():
            held[term] -= 1
            value -= shares[term] if held[term] == 0 else 0
        if at >= size - 1:
            yield value


def get_term_weight(term: str) -> float:
    """Return how much a term counts for its kind."""
    if term.startswith("#"):
        return _NAME_WEIGHT
    if term.startswith("`"):
        return _QUOTE_WEIGHT
    return _PAIR_WEIGHT if " " in term else 1.0


def find_claim_terms(text: str) -> Terms:
    """Return the terms of a sentence; of its words those that carry meaning, its names as named and as defined."""
    bare = MARKER.sub(" ", text)
    stems = [word[:_STEM] if is_content_word(word) else "" for word in split_words(bare)]
    pairs = {f"{one} {other}" for one, other in pairwise(stems) if one and other}
    names = find_names(bare)
    defined = {f"#={part}" for name in find_qualified_names(bare) for part in _join_parts(name)}
    named = {f"#{name}" for name in names} | {f"#={name}" for name in names}
    return frozenset({*stems, *pairs, *named, *defined, *map("`{}".format, find_quotes(bare))}) - {""}


def find_quotes(text: str) -> list[str]:
    """Return what a sentence quotes that is more than a name (`-x`, `/feeds/refresh`), lower-case."""
    _, spans = split_spans(text)
    quotes = (_normalize(span) for span in spans if len(span) <= _LONGEST_QUOTE)
    return [quote for quote in quotes if len(quote) > 1 and not quote.replace("_", "a").isalnum()]


@lru_cache(maxsize=1 << 13)
def find_line_terms(line: str) -> Terms:
    """Return the terms of a line of code, but for quotes of a sentence."""
    stems = [word[:_STEM] for word in split_words(line)]
    pairs = {f"{one} {other}" for one, other in pairwise(stems)}
    return frozenset({*stems, *pairs, *(f"#{name}" for name in find_identifiers(line))})


def match_quotes(line: str, quotes: Sequence[str]) -> Terms:
    """Return those of some quotes that stand in a line."""
    written = _normalize(line) if quotes else ""
    return frozenset(f"`{quote}" for quote in quotes if quote in written)


def find_definition_terms(names: Iterable[str]) -> Terms:
    """Return the terms of definitions by their qualified names: a method by its own name, and by that of its class."""
    bare = [".".join(part.rstrip("!?=") for part in name.lower().split(".")) for name in names]
    own = {f"#={name.rpartition('.')[2]}" for name in bare}
    return frozenset(own | {f"#={part}" for name in bare for part in _join_parts(name.split("."))})


def _join_parts(parts: Sequence[str]) -> Iterator[str]:
    return (f"{one}.{other}" for one, other in pairwise(parts))


def _normalize(text: str) -> str:
    return " ".join(text.split()).lower()
