"""Judges an answer against a truth that was written down before: 2 points, 1 or 0.

2: right, and easy to use. What the truth `says` is in the first screen (`at_most_lines` rows of the terminal, of
   which an overview gets 30 and a list of eight names or more at least 40, so that a name may have two); of the `names`
   that belong to a list, nine tenths are there, with the right `count` where one is asked for; or, for a truth that is
   only a place, one of the first three citations shows it closely. Nothing that is `wrong` is there. Where commands are
   asked for, the first one is in the first paragraph or the code below it: no other is to be copied in its place.
1: there, but hard to use: further down in the answer, half of a list, without its count, beside something wrong, or
   in lines that are cited and not shown.
0: not there.

Everything is compared as plain text, so the same answer always gets the same points.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent import Citation
from bot.questions.expectations import Place, Wording

WIDTH = 100  # columns of the terminal that an answer is thought to be read in
SCREEN = 20  # rows of it that are read before anything is scrolled
FIRST = 3  # citations that somebody opens
ENOUGH, HALF = 0.9, 0.5  # of a list
LEADING = "commands"  # the kind of question whose answer is copied from its first lines

_MARK = re.compile(r"\[\d+\]")

Spellings = tuple[str, ...]  # one thing, in each of the ways in which an answer may name it


@dataclass(frozen=True, kw_only=True, slots=True)
class Truth:
    """What a good answer contains; `places` are alternatives, and second best where a text is asked for."""

    places: tuple[Place, ...] = ()
    says: tuple[Spellings, ...] = ()
    names: tuple[Spellings, ...] = ()
    counts: tuple[int, ...] = ()  # alternatives too: some count tests, and some do not
    wrong: tuple[str, ...] = ()

    @classmethod
    def parse(cls, record: dict[str, Any]) -> Truth:
        """Read a truth from its record in a file of questions."""
        if unknown := set(record) - {"places", "says", "names", "count", "wrong"}:
            raise ValueError(f"a truth has no {', '.join(sorted(unknown))}")
        truth = cls(
            places=tuple(map(Place.parse, record.get("places", ()))),
            says=tuple(map(_list_spellings, record.get("says", ()))),
            names=tuple(map(_list_spellings, record.get("names", ()))),
            counts=_list_counts(record.get("count", ())),
            wrong=tuple(record.get("wrong", ())),
        )
        if not (truth.places or truth.is_shown):
            raise ValueError("a truth names places, says something, lists names or counts them")
        return truth

    @property
    def is_shown(self) -> bool:
        """Whether the answer itself has to contain something, and not only point at a place."""
        return bool(self.says or self.names or self.counts)


def _list_counts(entry: int | Sequence[int]) -> tuple[int, ...]:
    return (entry,) if isinstance(entry, int) else tuple(entry)


def _list_spellings(entry: str | Sequence[str]) -> Spellings:
    return (entry,) if isinstance(entry, str) else tuple(entry)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question as a teammate writes it, its kind, and its truth."""

    kind: str
    text: str
    truth: Truth
    at_most_lines: int = field(default=SCREEN)

    @classmethod
    def parse(cls, record: dict[str, Any]) -> Question:
        """Read a question from its record in a file of questions."""
        return cls(
            kind=record["kind"],
            text=record["question"],
            truth=Truth.parse(record["truth"]),
            at_most_lines=record.get("at_most_lines", SCREEN),
        )


def score_answer(question: Question, text: str, citations: Sequence[Citation]) -> int:
    """Give 2 points, 1 or 0."""
    truth = question.truth
    if not truth.is_shown:
        return _score_places(truth, text, citations)
    leads = question.kind != LEADING or not truth.says or Wording(keep_lead(text)).has_any(truth.says[0])
    if leads and _is_complete(truth, cut_screen(text, question.at_most_lines)):
        return 2
    if _is_half_there(truth, text) or any(place.is_cited_by(each) for place in truth.places for each in citations):
        return 1
    return 0


def _is_complete(truth: Truth, text: str) -> bool:
    screen = Wording(text)
    return (
        all(screen.has_any(spellings) for spellings in truth.says)
        and _find_recall(truth.names, screen) >= ENOUGH
        and (not truth.counts or Wording(keep_prose(text)).has_any(map(str, truth.counts)))
        and not screen.has_any(truth.wrong)
    )


def _is_half_there(truth: Truth, text: str) -> bool:
    whole = Wording(text)
    said = all(whole.has_any(spellings) for spellings in truth.says)
    return bool(truth.says or truth.names) and said and _find_recall(truth.names, whole) >= HALF


def _score_places(truth: Truth, text: str, citations: Sequence[Citation]) -> int:
    wrong = Wording(text).has_any(truth.wrong)
    if not wrong and any(place.is_shown_closely_by(each) for place in truth.places for each in citations[:FIRST]):
        return 2
    if any(place.is_cited_by(each) for place in truth.places for each in citations):
        return 1
    wording = Wording(text)
    return 1 if any(place.start is None and wording.has(place.path) for place in truth.places) else 0


def _find_recall(names: Sequence[Spellings], wording: Wording) -> float:
    return sum(wording.has_any(spellings) for spellings in names) / len(names) if names else 1.0


def cut_screen(text: str, rows: int) -> str:
    """The part of an answer that fills the first rows of the terminal; a long line fills several."""
    kept: list[str] = []
    for line in text.strip().split("\n"):
        if rows <= 0:
            break
        kept.append(line[: rows * WIDTH])
        rows -= max(1, -(-len(line) // WIDTH))
    return "\n".join(kept)


def keep_lead(text: str) -> str:
    """The first paragraph of an answer, and the code below it where it has some."""
    opening, _, rest = text.strip().partition("\n\n")
    if opening.startswith("```"):
        return text.strip()[3:].partition("```")[0]
    return opening + rest[3:].partition("```")[0] if rest.startswith("```") else opening


def keep_prose(text: str) -> str:
    """An answer without its code, lists, tables and citation marks, whose numbers count nothing."""
    kept: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.lstrip().startswith(("- ", "* ", "|")):
            kept.append(_MARK.sub("", line))
    return "\n".join(kept)
