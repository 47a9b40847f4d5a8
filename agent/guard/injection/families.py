"""Families of attacks: rules over concepts, read from `families.toml` with the concepts' words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from itertools import takewhile
from operator import or_
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from agent.guard.injection.lexicon import Lexicon, Mark

NEAR = 3  # words between two parts of a rule
GAPS = {"~": 1, "..": 11, "...": 90}
_LITERAL = re.compile(r"=(\w+)")
Scope = Literal["sure", "orders", "addressed", "names", "evidence"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


class Part(NamedTuple):
    """A part of a rule: bits that a mark must all have, bits of which it needs one, and the maximal distance."""

    all_of: int
    one_of: int
    gap: int


@dataclass(frozen=True)
class Rule:
    """Consecutive parts, with none of the excluded concepts among them."""

    parts: Sequence[Part]
    without: int

    @cached_property
    def choices(self) -> Sequence[int]:
        """The bits of which each part needs one."""
        return [part.one_of for part in self.parts]

    def find(self, marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
        """Find the match of a rule; the shorter of two counts."""
        nothing: list[Mark | None] = [None] * len(self.parts)
        reached = nothing.copy()
        for number, mark in enumerate(marks):
            if mark.bits & self.without:
                reached = nothing.copy()
                continue
            for place in reversed(range(len(self.parts))):
                if (step := self._take(place, reached[place - 1] if place else None, mark)) is not None:
                    reached[place] = step
            if (whole := reached[-1]) is not None:
                if not self._is_excluded(marks, number):
                    yield whole.start, whole.end
                reached = nothing.copy()

    def _take(self, place: int, before: Mark | None, mark: Mark) -> Mark | None:
        """Return the mark for a part of the rule at a position, with the beginning of the previous part."""
        part = self.parts[place]
        if not mark.bits & part.one_of or mark.bits & part.all_of != part.all_of:
            return None
        if place == 0:
            return mark
        if before is None or not 0 <= mark.first - before.last - 1 <= part.gap:
            return None
        return mark._replace(start=before.start)

    def _is_excluded(self, marks: Sequence[Mark], number: int) -> bool:
        """Whether an excluded concept directly follows a mark."""
        following = (marks[each] for each in range(number + 1, len(marks))) if self.without else ()
        near = takewhile(lambda mark: mark.first - marks[number].last <= NEAR, following)
        return any(mark.bits & self.without for mark in near)


def combine_bits(marks: Sequence[Mark]) -> int:
    """Combine the bits of several marks."""
    return reduce(or_, (mark.bits for mark in marks), 0)


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of attack. `said` describes its subject to the author, and never the matched words.

    Its rules are grouped by where they apply: `sure` and `orders` only in orders, `addressed` in
    questions too, `names` in long names, `evidence` in text for a model, together with the `sure`
    ones.
    """

    name: str
    said: str
    rules: Mapping[Scope, Sequence[Rule]]

    def find(self, marks: Sequence[Mark], *scopes: Scope, present: int = 0) -> Iterator[tuple[int, int]]:
        """Find matches of the family by its rules of these scopes; `present` has the bits of all marks."""
        present = present or combine_bits(marks)
        for scope in scopes:
            for rule in self.rules[scope]:
                if all(map(present.__and__, rule.choices)):
                    yield from rule.find(marks)

    def is_in(self, marks: Sequence[Mark], *scopes: Scope, present: int = 0) -> bool:
        """Whether one of the rules of these scopes matches."""
        return next(self.find(marks, *scopes, present=present), None) is not None


@dataclass(frozen=True)
class Families:
    """All families, with the lexicon that their rules are written in."""

    lexicon: Lexicon
    every: Sequence[Family]


@cache
def load_families() -> Families:
    """Load the data, once per process."""
    content = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
    literals = {
        f"={word}": word
        for family in content["families"].values()
        for scope in SCOPES
        for word in _LITERAL.findall(family.get(scope, ""))
    }
    lexicon = Lexicon(content["words"] | literals, content["shapes"])
    every = [
        Family(
            name=name,
            said=family["said"],
            rules={scope: parse_rules(family.get(scope, ""), lexicon.bits) for scope in SCOPES},
        )
        for name, family in content["families"].items()
    ]
    return Families(lexicon, every)


def parse_rules(text: str, bits: Mapping[str, int]) -> Sequence[Rule]:
    """Parse rules, one a line: concepts in order, `a|b` for either, `^a` that begins an order, `$` for the end of one.

    A few words may come between two of them, `~` allows one, `..` more, `...` sentences, and `$`
    none. `=a` is the word itself, and `!a` excludes a concept from among them and right behind
    them.
    """
    return [_parse_rule(line, bits) for line in text.split("\n") if line]


def _parse_rule(line: str, bits: Mapping[str, int]) -> Rule:
    parts: list[Part] = []
    without = 0
    gap = NEAR
    for word in line.split():
        if word in GAPS:
            gap = GAPS[word]
        elif word.startswith("!"):
            without |= _combine(word[1:], bits)
        elif word == "$":
            parts.append(Part(0, bits["end"], 1))
        else:
            parts.append(Part(bits["begin"] if word.startswith("^") else 0, _combine(word.lstrip("^"), bits), gap))
            gap = NEAR
    return Rule(parts, without)


def _combine(names: str, bits: Mapping[str, int]) -> int:
    return reduce(or_, (bits[name] for name in names.split("|")))
