"""Resolves what a question points back to - "it", "its tests", "that class" - against the last turns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.questions.terms import find_content_terms
from agent.state import PastTurn

_NOUN = (
    r"(?:function|method|class|type|file|module|code|test|tests|one|thing|symbol|error|exception|constant|snippet"
    r"|part|definition|helper|handler|decorator|call)"
)
_STATE = (
    r"(?:defined|used|called|tested|implemented|done|handled|raised|set|documented|declared|imported|configured"
    r"|invoked|located|happen|work|mean|live|come|return|do|written|checked)"
)
_POINTER = re.compile(
    rf"\b(?:(?P<noun_form>(?:that|this|the\s+same|those|these|the\s+(?:above|last|previous)(?:\s+one)?)\s+(?P<noun>{_NOUN}))"
    rf"|(?P<owner>its|their)"
    rf"|(?P<plain>it(?!\s+(?:is\s+)?(?:possible|ok|okay|safe|necessary|true|better)\b)|they|them|those|these"
    rf"|(?:that|this)(?=\s*(?:$|[?.!,;])|\s+(?:be\s+|get\s+|gets\s+)?{_STATE}\b)))(?!\w)",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(r"(?:and|but|also|so|ok(?:ay)?|then|what\s+about|how\s+about)\b[\s,]{0,3}", re.IGNORECASE)
_SUBJECT = re.compile(
    r"(?:who|what)\s+(?:calls|uses)\s*$|(?:the\s+|any\s+)?(?P<list>tests?|callers?|callees?|usages?|references|definition)\s*$|why\s*$|how\s*$|where\s*$",
    re.IGNORECASE,
)
_HAS_WORD_AFTER = 12  # more words than this before a pointer, and the sentence names what it means by itself


@dataclass(frozen=True, kw_only=True, slots=True)
class Antecedent:
    """What the last turns were about: a symbol, its kind, and the file of their first citation."""

    symbol: str
    kind: str
    path: str


def find_antecedent(history: Sequence[PastTurn]) -> Antecedent | None:
    """Return what "it" means after these turns: the newest symbol, else the newest file; None for neither."""
    for turn in reversed(history):
        if turn["symbol"] or turn["path"]:
            return Antecedent(symbol=turn["symbol"], kind=turn["kind"], path=turn["path"])
    return None


def is_pointing_back(question: str) -> bool:
    """Whether the question leans on something said before rather than on its own words."""
    pointer = _POINTER.search(question)
    if pointer is not None:
        before = question[: pointer.start()]
        return len(before.split()) <= _HAS_WORD_AFTER and not find_content_terms(_without_verbs(before))
    return _parse_ellipsis(question) is not None


def resolve_references(question: str, target: Antecedent) -> str:
    """Write the question anew with what it points at in place of the pointer."""
    rest = _parse_ellipsis(question)
    if rest is not None and _POINTER.search(rest) is None:
        return _complete_question(rest, target)
    opening = _ELLIPSIS.match(question)
    bare = question[opening.end() :] if opening else question
    return _POINTER.sub(lambda found: _name_antecedent(found, target), bare, count=1).strip()


def _parse_ellipsis(question: str) -> str | None:
    """Return what follows "and" or "what about" when it is too short to stand alone."""
    opening = _ELLIPSIS.match(question)
    rest = (question[opening.end() :] if opening else question).strip().rstrip("?.! ")
    return rest if _SUBJECT.fullmatch(rest) else None


def _complete_question(rest: str, target: Antecedent) -> str:
    name = f"`{target.symbol or target.path}`"
    found = _SUBJECT.fullmatch(rest)
    if found is not None and found["list"]:
        return f"{found['list'].lower()} of {name}"
    return f"{rest} {name}" if rest.lower().startswith(("who", "what")) else f"how does {name} work"


def _name_antecedent(found: re.Match[str], target: Antecedent) -> str:
    if found["owner"]:
        return f"`{target.symbol or target.path}`'s"
    noun = (found["noun"] or "").lower()
    if noun in {"file", "module"} and target.path:
        return f"`{target.path}`"
    if noun in {"class", "type"} and target.kind == "method":
        return f"`{target.symbol.rpartition('.')[0]}`"
    return f"`{target.symbol or target.path}`"


def _without_verbs(text: str) -> str:
    """Drop the words with which one asks about a known thing: "who calls", "which tests cover"."""
    return re.sub(
        r"\b(?:calls?|called|invokes?|tests?|tested|covers?|defines?|defined|callers?|callees?|usages?|references?"
        r"|implement(?:s|ed)?|return|returns|raises?|change[sd]?|depends?|imports?|describe|documented|again|open)\b",
        " ",
        text,
        flags=re.IGNORECASE,
    )
