"""Chooses the lines of evidence for a prompt: the relevant ones, each once, within a limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.evidence.refs import Quote
from agent.questions.terms import match_terms
from agent.state import EvidenceRef

Part = Literal["whole", "core", "header", "outline"]

LONGEST_READ = 200  # lines of one piece of evidence
HEADER_READ = 60  # lines in which a signature and a docstring's first line are looked for
NUMBER_COST = 7  # characters that the number of a line takes
HEADING_COST = 80  # characters that a heading takes
HIT_CHARS = 2_000  # of a hit: as many as a chunk has with its numbers, so that it stays whole
WHOLE_HITS = 6  # that get so much; the others get half of it
CLOSE_SHARE = 0.4  # of the best hit's score, below which a hit is not shown
DEFINITION_CHARS = 4_000  # of the first definition that was looked up; each further one has half of it, but ...
MIN_DEFINITION_CHARS = 1_000
RELEVANT_MEMBERS = 3  # of a file that was asked for, beside its outline
_MAX_SIGNATURE = 12  # lines
_DOC_QUOTES = ('"""', "'''", '"', "/**", "///", "//!")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A piece of evidence, the part of it to show, and the limit of characters."""

    ref: EvidenceRef
    part: Part
    rank: int
    most: int = 0

    @property
    def last_read(self) -> int:
        """Return the last line worth reading."""
        read = HEADER_READ if self.part in {"header", "outline"} else LONGEST_READ
        return min(self.ref["end_line"], self.ref["start_line"] + read - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidencePlan:
    """The lines to show, most needed first: read or requested places, the rest, and headers around them.

    The rank of a piece is its final position.
    """

    exact: list[Wanted] = field(default_factory=list)
    ranked: list[Wanted] = field(default_factory=list)
    headers: list[Wanted] = field(default_factory=list)


def plan_evidence(refs: Iterable[EvidenceRef], terms: frozenset[str]) -> EvidencePlan:
    """Choose which part of each piece is worth its room."""
    # A commit has no lines to show, and what differs brings its own.
    kept = [ref for ref in refs if ref["path"] and ref["role"] != "change"]
    outlined = {ref["path"] for ref in kept if ref["role"] == "file"}
    members = _find_relevant_members([ref for ref in kept if ref["path"] in outlined], terms)
    best = max((ref["score"] for ref in kept if ref["role"] == "hit"), default=0.0)
    plan = EvidencePlan()
    hits = definitions = 0
    for rank, ref in enumerate(_put_code_first(kept)):
        if ref["role"] == "hit":
            most = HIT_CHARS if hits < WHOLE_HITS else HIT_CHARS // 2
            if ref["score"] >= CLOSE_SHARE * best:
                plan.ranked.append(Wanted(ref=ref, part="core", rank=rank, most=most))
            hits += 1
        elif ref["role"] == "parent" or (ref["role"] == "definition" and hits):
            plan.headers.append(Wanted(ref=ref, part="header", rank=rank))
        elif ref["role"] == "sibling" or (
            ref["role"] == "definition" and ref["path"] in outlined and ref["symbol"] not in members
        ):
            plan.ranked.append(Wanted(ref=ref, part="outline", rank=rank))
        elif ref["role"] == "definition":
            most = max(DEFINITION_CHARS >> definitions, MIN_DEFINITION_CHARS)
            plan.ranked.append(Wanted(ref=ref, part="core", rank=rank, most=most))
            definitions += 1
        else:
            plan.exact.append(Wanted(ref=ref, part="whole", rank=rank))
    return plan


def _put_code_first(refs: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Put the best hit outside tests before leading tests."""
    ordered = list(refs)
    hits = [at for at, ref in enumerate(refs) if ref["role"] == "hit"]
    better = next((at for at in hits if refs[at]["source_type"] != "test"), None)
    if better is not None:
        ordered.insert(hits[0], ordered.pop(better))
    return ordered


def _find_relevant_members(refs: Sequence[EvidenceRef], terms: frozenset[str]) -> frozenset[str]:
    """Name the members of a file that share most words with the question in name, signature or description."""
    shared = [(len(match_terms(f"{ref['symbol']} {ref['signature']} {ref['doc']}", terms)), ref) for ref in refs]
    ranked = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return frozenset(ref["symbol"] for _, ref in ranked[:RELEVANT_MEMBERS])


def choose_lines(wanted: Wanted, quote: Quote, terms: frozenset[str]) -> list[int]:
    """Return the indexes of a piece's lines to show."""
    lines = quote.lines
    if wanted.part == "whole":
        return list(range(len(lines)))
    if wanted.part in {"header", "outline"}:
        return find_header(lines, wanted.ref["signature"])
    size = sum(len(line) + NUMBER_COST for line in lines)
    if wanted.part == "core" and size <= wanted.most:
        return list(range(len(lines)))
    matches = [match_terms(line, terms) for line in lines]
    header = find_header(lines, wanted.ref["signature"]) if wanted.ref["signature"] else []
    start, end = find_core(lines, matches, wanted.most - sum(len(lines[at]) + NUMBER_COST for at in header))
    return sorted({*header, *range(start, end)})


def find_header(lines: Sequence[str], signature: str) -> list[int]:
    """Return the indexes of a definition's signature, and of the first line of its docstring."""
    name = next(reversed(signature.partition("(")[0].split()), "")
    begin = next((at for at, line in enumerate(lines) if name and name in line), 0)
    end, depth = begin, 0
    for at in range(begin, min(begin + _MAX_SIGNATURE, len(lines))):
        depth += lines[at].count("(") - lines[at].count(")")
        end = at
        if depth <= 0:
            break
    doc = end + 1
    if doc >= len(lines) or not lines[doc].strip().lstrip("rbuRBU").startswith(_DOC_QUOTES):
        return [*range(begin, end + 1)]
    is_bare = not any(map(str.isalnum, lines[doc])) and doc + 1 < len(lines)
    return [*range(begin, doc + 1 + is_bare)]


def find_core(lines: Sequence[str], matches: Sequence[frozenset[str]], most: int) -> tuple[int, int]:
    """Return the start and the end (exclusive) of the best matching lines within so many characters.

    Of several equal matches, take the middle one, so that there are lines before and after it.
    """
    counts: dict[str, int] = {}
    for term in (term for terms in matches for term in terms):
        counts[term] = counts.get(term, 0) + 1
    weights = [sum(math.log(1 + len(lines) / counts[term]) for term in terms) for terms in matches]
    best, alike = -1.0, [(0, 1)]
    end, size, value = 0, 0, 0.0
    for start in range(len(lines)):
        while end < len(lines) and (end == start or size + len(lines[end]) + NUMBER_COST <= most):
            size += len(lines[end]) + NUMBER_COST
            value += weights[end]
            end += 1
        if value > best + 1e-9:
            best, alike = value, []
        if value > best - 1e-9:
            alike.append((start, end))
        size -= len(lines[start]) + NUMBER_COST
        value -= weights[start]
    return alike[len(alike) // 2]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownRange:
    """Adjoining lines of a file to show, and their piece of evidence."""

    path: str
    first_line: int
    lines: Sequence[str]
    ref: EvidenceRef

    @property
    def last_line(self) -> int:
        """The last of the lines."""
        return self.first_line + len(self.lines) - 1


@dataclass(kw_only=True, slots=True)
class LineSelection:
    """Collects lines of files while there is room; a line shared by several pieces is shown once."""

    room: int
    _lines: dict[str, dict[int, str]] = field(default_factory=dict)
    _owners: dict[tuple[str, int], Wanted] = field(default_factory=dict)

    def add(self, wanted: Wanted, lines: Mapping[int, str]) -> bool:
        """Add the missing lines, and say whether they fit; cut whole pieces at the end."""
        path = wanted.ref["path"]
        held = self._lines.setdefault(path, {})
        new = {at: text for at, text in lines.items() if at not in held}
        cost = HEADING_COST if new and len(new) == len(lines) else 0
        for at, text in new.items():
            if cost + len(text) + NUMBER_COST > self.room:
                if wanted.part != "whole":
                    return False
                new = {other: line for other, line in new.items() if other < at}
                break
            cost += len(text) + NUMBER_COST
        self.room -= cost if new else 0
        held.update(new)
        self._owners.update({(path, at): wanted for at in new})
        return True

    def is_needless(self, wanted: Wanted) -> bool:
        """Whether a piece adds nothing: the header of missing lines."""
        held, ref = self._lines.get(wanted.ref["path"], {}), wanted.ref
        return wanted.part == "header" and not any(ref["start_line"] <= at <= ref["end_line"] for at in held)

    def list_ranges(self) -> list[ShownRange]:
        """Return the lines as ranges, ordered by their best piece of evidence."""
        runs = [(path, run) for path, held in self._lines.items() for run in _split_runs(sorted(held))]
        owned = [
            (min((self._owners[path, at] for at in run), key=lambda one: one.rank), path, run) for path, run in runs
        ]
        return [
            ShownRange(path=path, first_line=run[0], lines=[self._lines[path][at] for at in run], ref=owner.ref)
            for owner, path, run in sorted(owned, key=lambda one: one[0].rank)
        ]


def _split_runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run
