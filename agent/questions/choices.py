"""Resolves what a question picks out of the last answer: "show me the second one", "what is [3]?", "show me more"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.questions.language import parse_only_language
from agent.questions.mentions import find_mentions
from agent.state import CitationRef, PastTurn

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SELECTED_NOUN = (
    r"one|result|place|hit|caller|callee|call|usage|use|mention|match|item|entry|citation|option|definition|file|thing"
    r"|function|method|class|struct|interface|trait|enum|type|constant|test"
)
_OPENING = (
    r"(?:(?:can|could)\s+you\s+|please\s+|and\s+|ok(?:ay)?,?\s+)*"
    r"(?:(?:show|open|explain|see|view|give|display|print|describe|expand|quote|read)(?:\s+(?:me|us))?\s+|tell\s+me\s+(?:more\s+)?about\s+"
    r"|(?:what|how)\s+about\s+|what(?:'s|\s+is|\s+does)\s+)?"
)
_PICK = re.compile(
    rf"{_OPENING}(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINALS)}|last)(?:\s+(?P<noun>{_SELECTED_NOUN}))?"
    rf"|(?:number|no\.?|nr\.?|\#)\s*(?P<number>\d{{1,2}})|(?P<nth>\d{{1,2}})(?:st|nd|rd|th)(?:\s+(?P<noun2>{_SELECTED_NOUN}))?"
    rf"|\[(?P<mark>\d{{1,2}})\])(?:\s+do)?(?:\s+please)?",
    re.IGNORECASE,
)
_MORE = re.compile(
    rf"{_OPENING}(?:(?:some\s+)?more(?:\s+(?:of\s+)?(?:it|that|code|lines|context))?|(?:the\s+)?rest(?:\s+of\s+(?:it|that))?|all\s+of\s+(?:it|that)"
    r"|the\s+(?:whole|full|entire|complete)\s+(?:thing|code|function|method|class|definition|body|source))(?:\s+please)?",
    re.IGNORECASE,
)
_MARK = re.compile(r"\[(\d{1,4})\]")
_SITE = {
    "caller",
    "callee",
    "call",
    "usage",
    "use",
    "mention",
    "test",
    "match",
    "hit",
    "result",
    "place",
    "one",
    "thing",
}


def resolve_selection(question: str, history: Sequence[PastTurn]) -> str | None:
    """Return what the question picks of the last answer, as a question; None when it picks nothing.

    Lines are written as `path:start-end`; another language (`and in Go?`) asks the last question anew.
    """
    line = " ".join(question.split()).rstrip("?.! ")
    if history and (language := parse_only_language(line)):
        last = history[-1]
        again = f"where is `{last['symbol']}` defined" if last["symbol"] else last["question"].rstrip("?.! ")
        return f"{again} in {language}?"
    turn = next((turn for turn in reversed(history) if turn["citations"]), None)
    if turn is None or len(line) > 100:
        return None
    if _MORE.fullmatch(line):
        return _format_citation(turn["citations"][0])
    found = _PICK.fullmatch(line)
    if found is None or not (found["noun"] or found["noun2"] or found["number"] or found["mark"] or _is_verbal(line)):
        return None
    citation = _citation(found, turn)
    return _format_citation(citation) if citation is not None else None


def _is_verbal(line: str) -> bool:
    """Whether "second" stands as an object ("show me the second") and not as an adverb or a name."""
    return "the " in line.lower() or line.lower().startswith(("show", "open", "and", "what"))


def _citation(found: re.Match[str], turn: PastTurn) -> CitationRef | None:
    by_mark = {citation["mark"]: citation for citation in turn["citations"]}
    if found["mark"]:
        return by_mark.get(int(found["mark"]))
    marks = _items(turn["answer"], (found["noun"] or found["noun2"] or "").lower())
    marks = [mark for mark in marks if mark in by_mark] or sorted(by_mark)
    at = _position(found, len(marks))
    return by_mark[marks[at]] if 0 <= at < len(marks) else None


def _position(found: re.Match[str], count: int) -> int:
    word = (found["word"] or "").lower()
    if word == "last":
        return count - 1
    return _ORDINALS.index(word) if word else int(found["number"] or found["nth"]) - 1


def _items(answer: str, noun: str) -> list[int]:
    """Return the marks of what the answer lists, in order: its headlines and list items, of the kind asked for."""
    items: list[tuple[int, str]] = []
    inside = False
    for line in answer.split("\n"):
        if line.startswith(("```", "~~~")):
            inside = not inside
        elif not inside and line.startswith(("- ", "`")) and (mark := _MARK.search(line)):
            items.append((int(mark[1]), line))
    if noun and noun not in _SITE:
        of_kind = [mark for mark, line in items if re.search(rf"\b{noun}\b(?:\s+in)?\s*`|, {noun} in\b", line)]
        if of_kind:
            return of_kind
    return [mark for mark, _ in items]


def _format_citation(citation: CitationRef) -> str | None:
    """Write the lines as a question; None for a path that a question cannot hold."""
    text = f"{citation['path']}:{citation['start_line']}-{citation['end_line']}"
    paths = find_mentions(text).paths
    return text if paths and paths[0].path == citation["path"] else None
