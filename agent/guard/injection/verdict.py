"""Detects prompt injection in what a person wrote, by the families of attacks: a tripwire, not a wall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from agent.guard.injection.clauses import Clauses, read_clauses
from agent.guard.injection.families import Family, load_families
from agent.guard.injection.lexicon import Name, Reading
from agent.guard.injection.normalization import Disguise, NormalizedQuestion, normalize_question
from agent.state import VerdictName

EARLIER_MESSAGES = 3  # of the same conversation, read together with the newest
_MOST_QUESTIONS = 50  # of one message that are looked at for a real one
_EARLIER_LENGTH = 1200  # characters of each

# Nobody writes an order in these by accident; a letter with an accent or a digit among letters is no disguise.
_ON_PURPOSE: frozenset[Disguise] = frozenset({"base64", "hex", "tags", "rot13", "reversed", "escaped", "spaced"})
_DISGUISED_ON_PURPOSE = frozenset({"override", "prompt"})


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectionVerdict:
    """The guard's judgement of a message.

    `rules` name the families that matched, for the log and never for the asker; `said` is what it reads as.
    """

    name: VerdictName
    rules: tuple[str, ...] = ()
    said: str = "an order to me"


def judge_injection(message: NormalizedQuestion) -> InjectionVerdict:
    """Judge every form of a message: block certain attacks, watch possible ones."""
    found: dict[str, Family] = {}
    sure: list[Family] = []
    asks = False
    for disguise, form in message.forms:
        clauses = read_clauses(form)
        orders, questions = (
            load_families().lexicon.read(clauses.orders),
            load_families().lexicon.read(clauses.questions),
        )
        matches = _find_matches(orders, questions, load_families().lexicon.read(clauses.whole).names)
        asks = asks or (disguise == "plain" and _has_question(clauses))
        sure += [
            family
            for family in matches
            if family.is_in(orders.marks, "sure") or (disguise in _ON_PURPOSE and family.name in _DISGUISED_ON_PURPOSE)
        ]
        found |= {family.name: family for family in matches}
    if not found:
        return InjectionVerdict(name="allow")
    first = next(iter([*sure, *found.values()]))
    # An order beside a real question does not silence who asks: the question is answered, under watch.
    name: VerdictName = "block" if sure and not asks else "watch"
    return InjectionVerdict(name=name, rules=tuple(sorted(found)), said=first.said)


def judge_conversation(message: str, earlier: Sequence[str]) -> InjectionVerdict:
    """Judge a message with those that the same person wrote before it; what is split over several is watched."""
    own = judge_injection(normalize_question(message))
    if own.name != "allow" or not earlier:
        return own
    before = [text[:_EARLIER_LENGTH] for text in earlier[-EARLIER_MESSAGES:]]
    for together in ("\n".join([*before, message]), " ".join([*before, message])):
        verdict = judge_injection(normalize_question(together))
        if verdict.name != "allow":
            return replace(verdict, name="watch")
    return own


def _find_matches(orders: Reading, questions: Reading, names: Sequence[Name]) -> list[Family]:
    return [
        family
        for family in load_families().every
        if family.is_in(orders.marks, "sure", "orders", "addressed")
        or family.is_in(questions.marks, "addressed")
        or (family.rules["names"] and any(family.is_in(name.marks, "names") for name in names))
    ]


def _has_question(clauses: Clauses) -> bool:
    """Whether a question is there that is no attack itself and speaks of something, as "how are you?" does not."""
    questions = dict.fromkeys(clauses.questions.split("\n"))
    return any(map(_is_real_question, islice(questions, _MOST_QUESTIONS)))


def _is_real_question(question: str) -> bool:
    words = question.lower().strip("?! ").split()
    says_enough = len(words) > (4 if "you" in words else 2)
    marks = load_families().lexicon.read(question).marks
    return says_enough and not any(family.is_in(marks, "addressed") for family in load_families().every)
