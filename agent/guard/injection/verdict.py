"""Judges what a person wrote by the families of attacks: a tripwire, not a wall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

from agent.guard.injection.clauses import Clauses, read_clauses
from agent.guard.injection.english import ENGLISH
from agent.guard.injection.families import FamilySet, InjectionFamily, Kind, Recogniser
from agent.guard.injection.normalization import Disguise, NormalizedQuestion, normalize_question
from agent.guard.injection.other_languages import LANGUAGES
from agent.state import VerdictName

FAMILIES: tuple[InjectionFamily, ...] = (*ENGLISH, *LANGUAGES)
EARLIER_MESSAGES = 3  # of the same conversation, read together with the newest
_MOST_QUESTIONS = 50  # of one message that are looked at for a real one
_EARLIER_LENGTH = 1200  # characters of each

# Nobody writes an order in these by accident; a letter with an accent or a digit among letters is no disguise.
_ON_PURPOSE: frozenset[Disguise] = frozenset({"base64", "hex", "tags", "rot13", "reversed", "escaped", "spaced"})


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectionVerdict:
    """What the guard makes of a message.

    `rules` name the families that matched, for the log and never for the asker; `kind` is what it reads as.
    """

    name: VerdictName
    rules: tuple[str, ...] = ()
    kind: Kind | None = None


def judge_injection(message: NormalizedQuestion) -> InjectionVerdict:
    """Look at every form of a message: block what is surely an attack and nothing else, watch what may be one."""
    found: dict[str, InjectionFamily] = {}
    is_sure = asks = False
    for disguise, form in message.forms:
        clauses = read_clauses(form)
        matches = _find_matches(clauses)
        asks = asks or (disguise == "plain" and _has_question(clauses))
        is_sure = is_sure or any(one.family.is_sure and one.is_match(clauses.orders) for one in matches)
        if disguise in _ON_PURPOSE:
            is_sure = is_sure or any(one.family.kind in {"override", "prompt"} for one in matches)
        found |= {one.family.name: one.family for one in matches}
    if not found:
        return InjectionVerdict(name="allow")
    first = next((family for family in found.values() if family.is_sure), next(iter(found.values())))
    # An order beside a real question does not silence who asks: the question is answered, under watch.
    return InjectionVerdict(
        name="block" if is_sure and not asks else "watch", rules=tuple(sorted(found)), kind=first.kind
    )


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


@cache
def _load_families() -> FamilySet:
    return FamilySet(FAMILIES, "questions")


def _find_matches(clauses: Clauses) -> list[Recogniser]:
    found = _load_families().find(clauses.whole)
    if clauses.orders not in clauses.whole:  # a sentence that was cut apart reads otherwise
        found += [one for one in _load_families().find(clauses.orders) if one not in found]
    return [one for one in found if _is_in_scope(one, clauses)]


def _is_in_scope(one: Recogniser, clauses: Clauses) -> bool:
    """Whether a family counts where it matched."""
    match one.family.scope:
        case "anywhere":
            return True
        case "addressed":
            return one.is_match(clauses.orders) or one.is_match(clauses.questions)
        case "orders":
            return one.is_match(clauses.orders)


def _has_question(clauses: Clauses) -> bool:
    """Whether a question is there that is no attack itself and speaks of something, as "how are you?" does not."""
    questions = dict.fromkeys(clauses.questions.split("\n"))
    return any(map(_is_real_question, islice(questions, _MOST_QUESTIONS)))


def _is_real_question(question: str) -> bool:
    words = question.lower().strip("?! ").split()
    says_enough = len(words) > (4 if "you" in words else 2)
    return says_enough and all(one.family.scope != "addressed" for one in _load_families().find(question))
