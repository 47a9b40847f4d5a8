"""Recognises requests to run something: a claim to check, or tests to fix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LONGEST_CLAIM = 1_500  # characters
LONGEST_ANSWER = 600

_WORD = re.compile(r"\S+")
_PLAIN = re.compile(r"[a-z']+")
_SELECTION = re.compile(r"[\w./-]+(?:::[\w:\[\].-]+)?")
_MARKS = re.compile(r"\[\d{1,4}\]")
# Words that may come before a request and add nothing.
_POLITE = frozenset("please pls can could would will you kindly hey hi ok okay yes now then and also so let's".split())
_CHECKS = frozenset("check verify confirm prove test".split())
_OPENERS = frozenset("that whether if".split())
_ASKS = frozenset("how what where which why who whose when".split())
_THIS = frozenset("it this that please by running run a test".split())
_MAKES = frozenset("make get let".split())
_PASSES = frozenset("pass passes passing green succeed".split())
_FILLERS = frozenset("the tests test in of and both all turn go run to be again".split())
# Runtime behaviour, which reading code can only infer.
_BEHAVES = frozenset("does do did will would can could".split())
_HEDGES = frozenset(
    "likely probably presumably apparently appears appear seems seem suggests implies inferred infer might".split()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedGoal:
    """A kind of goal with its arguments, and the person's own words."""

    goal: str
    arguments: Mapping[str, Any]
    task: str


def parse_goal_request(text: str) -> WantedGoal | None:
    """Read "check that ...", "verify ..." or "make tests/test_x.py pass"; None for everything else.

    "Check where it is set" asks for places, and no test could show "check the logs".
    """
    words = list(_WORD.finditer(text))
    first = _count_polite(words)
    plain = [_strip(word[0]) for word in words[first : first + 2]]
    if len(plain) < 2:
        return None
    if plain[0] in _MAKES:
        return _read_selection(text, [word[0] for word in words[first + 1 :]])
    if plain[0] in _CHECKS and plain[1] in _OPENERS:
        return make_claim(text[words[first + 1].end() :])
    if plain[0] == "verify" and plain[1] not in _ASKS and not is_verify_request(text):
        return make_claim(text[words[first].end() :])
    return None


def is_verify_request(text: str) -> bool:
    """Whether a message only wants the previous answer verified: "verify", "yes, verify it"."""
    words = [_strip(found[0]) for found in _WORD.finditer(text[:200])]
    rest = words[_count_polite(list(_WORD.finditer(text[:200]))) :]
    return bool(rest) and len(text) <= 200 and rest[0] == "verify" and _THIS.issuperset(rest[1:])


def make_claim(text: str) -> WantedGoal | None:
    """Make a claim from a request; None if it contains none."""
    claim = text.strip().lstrip(":").strip()
    if not any(map(str.isalnum, claim)) or len(claim) > LONGEST_CLAIM:
        return None
    return WantedGoal(goal="claim", arguments={"claim": claim}, task=claim)


def is_inference(question: str, answer: str) -> bool:
    """Whether an answer is about runtime behaviour: it hedges, or the question asks about behaviour."""
    asked = _PLAIN.findall(question[:400].lower())
    if asked[:1] and asked[0] in _BEHAVES:
        return True
    if any(pair == ("what", "happens") for pair in pairwise(asked)):
        return True
    return not _HEDGES.isdisjoint(_PLAIN.findall(answer[:4_000].lower()))


def claim_answer(question: str, answer: str) -> WantedGoal | None:
    """Make a claim from an answer: its first paragraph."""
    first = next((part for part in _MARKS.sub("", answer).split("\n\n") if part.strip()), "")
    said = " ".join(first.split())[:LONGEST_ANSWER]
    return make_claim(f'The answer to "{" ".join(question.split())[:400]}" is: {said}') if said else None


def _count_polite(words: Sequence[re.Match[str]]) -> int:
    return next((number for number, word in enumerate(words) if _strip(word[0]) not in _POLITE), len(words))


def _strip(word: str) -> str:
    return word.lower().strip(",.:;!?*_`\"'()")


def _read_selection(text: str, words: Sequence[str]) -> WantedGoal | None:
    """Read the selected tests: only their files, folders or names may come before that word."""
    plain = [_strip(word) for word in words]
    end = next((number for number, word in enumerate(plain) if word in _PASSES), 0)
    named = [word.strip(",;`\"'").removesuffix(".") for word in words[:end] if _strip(word) not in _FILLERS]
    if not named or not all(map(_is_selection, named)) or not _FILLERS.issuperset(filter(None, plain[end + 1 :])):
        return None
    return WantedGoal(goal="pytest", arguments={"select": named}, task=text.strip()[:LONGEST_CLAIM])


def _is_selection(word: str) -> bool:
    is_path = ".py" in word or "/" in word
    return is_path and not word.startswith("-") and _SELECTION.fullmatch(word) is not None
