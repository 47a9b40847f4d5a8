"""Scores a question against the families of injected instructions: a tripwire, not the wall."""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from agent.guard.families import FAMILIES, Family
from agent.guard.normalise import Normalised
from agent.state import VerdictName

BLOCK_AT = 1.0
WATCH_AT = 0.5
_HIDDEN_BONUS = 0.3  # nobody spells an instruction in base64 or look-alike letters by accident
_BIDI_SCORE = 0.3

_COMPILED = tuple((family, re2.compile(f"(?i){family.pattern}")) for family in FAMILIES)

_CLAUSE_END = re.compile(r"(?<=[.?!;:])\s+|\n+")
_ASKS = re.compile(
    r"\W{0,5}(?:(?:and|but|so|also|ok|okay|hi|hey|hello|please|then|well)\b[\s,]{0,3}){0,3}"
    r"(?:how|why|where|what|when|which|who|whose|does|do|did|is|are|was|were|has|have|should\s+(?:we|i)|must\s+(?:we|i)"
    r"|(?:can|could)\s+(?:we|i)|explain|describe|find|show\s+me\s+(?:where|how|which|(?:the|all|any|a)\s+(?:code|place|file|line|test|function|method|class)e?s?)|tell\s+me\s+(?:where|how|which|why))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|'(?<=\s')[^'\n]{1,400}'(?=[\s,.?!])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the tripwire says: `rules` name the families that matched, for the log and never for the asker."""

    name: VerdictName
    score: float
    rules: tuple[str, ...]


def judge(question: Normalised) -> Verdict:
    """Weigh every form of the question; the strongest match decides, and several weak ones add up."""
    scores: dict[str, float] = {}
    for disguise, form in question.forms:
        for family in _matches(form):
            bonus = 0.0 if disguise == "plain" else _HIDDEN_BONUS
            scores.setdefault(family.name, family.weight + bonus)
    if question.has_bidi_controls and scores:
        scores["bidi_controls"] = _BIDI_SCORE
    total = sum(scores.values())
    return Verdict(name=_name(total), score=total, rules=tuple(sorted(scores)))


def _matches(form: str) -> list[Family]:
    ordered: str | None = None
    found: list[Family] = []
    for family, pattern in _COMPILED:
        if pattern.search(form) is None:
            continue
        if not family.in_questions:
            ordered = _orders(form) if ordered is None else ordered
            if pattern.search(ordered) is None:
                continue
        found.append(family)
    return found


def _orders(form: str) -> str:
    """Return the form without its interrogative clauses, and without quotations when it asks something."""
    clauses = _CLAUSE_END.split(form)
    kept = [clause for clause in clauses if not _ASKS.match(clause)]
    rest = "\n".join(kept)
    return rest if len(kept) == len(clauses) else _QUOTED.sub(" ", rest)


def _name(score: float) -> VerdictName:
    if score >= BLOCK_AT:
        return "block"
    return "watch" if score >= WATCH_AT else "allow"
