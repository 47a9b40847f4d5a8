"""Splits a message into questions, without greetings and thanks."""

from __future__ import annotations

import re

from agent.questions.intents.model import SURE, IntentName, load_model
from agent.questions.mentions import find_mentions
from agent.questions.pasted_errors import parse_pasted_error
from agent.questions.remarks import find_remark
from indexer.text.linear_patterns import compile_pattern

_MAX_PARTS = 3
_LONGEST = 600
_MIN_WORDS = 3
_MIN_OF_ITEM = 2  # words of a question in a list
_MAX_PREFACE = 6  # words, such as "two quick things:"
_QUOTED = re.compile(r"`[^`\n]{1,200}`|\"[^\"\n]{1,300}\"")
_END = re.compile(r"\n\s*|(?<=[?？])\s*(?=\S)|(?<=[.!;:])\s+(?=\S)|(?<=[。！])(?=\S)")
_LIST_MARK = re.compile(r"(?:(?<=\s)|^)(?:\(?[1-5a-c]\)|[1-5]\.(?=\s)|[-*•](?=\s))\s*")
_JOINER = re.compile(r"(?i)(?:and|also|then|und|et|y)\b[\s,]+(?:also\s+)?")
_SALUTATION = re.compile(r"[^,`\n]{1,40},\s+(?=\S)")
_THANKS = compile_pattern(r"[,.!?]\s+(?P<said>[^,.!?`\n]{1,40})[.!)\s]*$")
_ASKS = compile_pattern(
    r"(?i)(?:who|what|which|where|when|why|how|does|do|is|are|can|list|show|give|tell|explain|describe|wer|was|welche[rsn]?|wo|wann"
    r"|warum|wie|qui|que|quel(?:le)?s?|où|comment|pourquoi|quién|qué|dónde|cómo|cuál(?:es)?)\b.*"
)
# A second question that names code, or is about what the first one names: "where is pay defined and who calls it?"
_JOINED = compile_pattern(
    r"(?i)(?P<first>.+?),?\s+(?:and|und|et|y)\s+(?P<second>(?:who|what|wer|was|wo|(?:where|when|why|how|what|which"
    r"|wann|warum|wie)(?:'s|\s+(?:is|was|are|were|does|did|do|has|can|wird|wurde|ist|hat)))\s.*)"
)
# Uses of two things: "who calls pay and refund", "are we still using celery or redis?"
_EACH = compile_pattern(
    r"(?i)(?P<lead>.*\b(?:calls?|uses?|using|need|import|imports|depend on) )(?P<one>[\w.-]+) (?:and|or) "
    r"(?P<other>[\w.-]+)(?P<rest>(?: (?:anywhere|somewhere|here|still|now|at all|any ?more))*)"
)
_OF_NAMES: frozenset[IntentName] = frozenset({"callers", "absence"})
_IT = compile_pattern(r"(?i)\b(?:it|es)\b")
_POINTING = compile_pattern(r"(?i)\b(?:it|its|they|them|their|those|these|that|one|er|sie|es|ihn|ils?|elles?|eso)\b")
# Questions about a project without a name.
_BY_ITSELF: frozenset[IntentName] = frozenset({"overview", "command", "value", "listing", "people", "changes"})


def split_questions(message: str) -> list[str]:
    """Return the questions of a message, at most three; the message itself if it asks one thing."""
    clauses = _split_clauses(message)
    is_list = sum(is_item for _, is_item in clauses) > 1
    around = [text for text, is_item in clauses if is_list and not is_item]
    if not all(map(_is_preface, around)):  # "where is what reads a) the file b) the socket"
        return [message]
    parts = [part for text, is_item in clauses if is_item or not is_list for part in _split_joined(text)]
    least = _MIN_OF_ITEM if is_list else _MIN_WORDS
    asks = [len(part.split()) >= least and (is_list or _ASKS.fullmatch(part) is not None) for part in parts]
    is_each = len(clauses) == 1 and len(parts) > 1 and _EACH.fullmatch(clauses[0][0]) is not None
    return [f"{part}?" for part in parts] if 1 < len(parts) <= _MAX_PARTS and (is_each or all(asks)) else [message]


def drop_talk(message: str) -> str:
    """Drop the greeting before the one question of a message and the thanks after it."""
    said = _drop_salutation(message.strip())
    clauses = _split_clauses(said)
    if len(clauses) == 1 and clauses[0][0] != said.rstrip(" ?.!;:"):
        [(text, _)] = clauses
        return f"{text}?" if f"{text}?" in said else text
    return said


def _split_clauses(message: str) -> list[tuple[str, bool]]:
    """Split a message into clauses; say of each whether it is an item of a list.

    Drops greetings and thanks. A message with code, a log or a stack trace is one clause.
    """
    if len(message) > _LONGEST or "```" in message:
        return [(message, False)]
    error = parse_pasted_error(message)
    if error is not None and error.is_evident:
        return [(message, False)]
    shown = _QUOTED.sub(lambda found: "x" * len(found[0]), message)
    marks = list(_LIST_MARK.finditer(shown))
    marks = marks if len(marks) > 1 else []
    starts = {found.end() for found in _END.finditer(shown)} - {found.end() for found in marks}
    starts |= {found.start() for found in marks} | {0}
    items = {found.start(): found.end() for found in marks}
    clauses: list[tuple[str, bool]] = []
    for start, end in zip(sorted(starts), [*sorted(starts)[1:], len(message)], strict=True):
        text = message[items.get(start, start) : end].strip()
        text = _JOINER.sub("", text, count=1) if _JOINER.match(text) else text
        text = _drop_thanks(text.rstrip(" ?？.!;。"))
        if text and find_remark(text) is None:
            clauses.append((text.rstrip(":") if start in items else text, start in items))
    return clauses or [(message, False)]


def _drop_salutation(text: str) -> str:
    found = _SALUTATION.match(text)
    return text[found.end() :] if found is not None and find_remark(found[0].strip(" ,")) is not None else text


def _drop_thanks(text: str) -> str:
    found = _THANKS.search(text)
    return text[: found.start()] if found is not None and find_remark(found["said"]) is not None else text


def _is_preface(text: str) -> bool:
    return text.endswith(":") and len(text.split()) <= _MAX_PREFACE


def _split_joined(question: str) -> list[str]:
    """Split a question from a joined one that names code, refers to a name, or asks for something else.

    A dependent second part ("and who wrote it?") stays with the first unless it has its own name.
    """
    if (each := _EACH.fullmatch(question)) is not None:
        asked = [f"{each['lead']}{name}{each['rest']}" for name in each.group("one", "other")]
        if load_model().rank(asked[0], lambda word: "xsym" * (word == each["one"]))[0].name in _OF_NAMES:
            return asked
    found = _JOINED.fullmatch(question)
    if found is None:
        return [question]
    first, second = found["first"], found["second"]
    is_led = bool(find_mentions(first).names)
    is_own = is_led and (find_mentions(second).anything or _IT.search(second) is not None)
    return [first, second] if is_own or _ask_apart(first, second) else [question]


def _ask_apart(first: str, second: str) -> bool:
    """Whether two questions clearly ask for different things, and the second is complete."""
    if _POINTING.search(second):
        return False
    one, other = (load_model().rank(question, lambda _word: "")[0] for question in (first, second))
    return one.name != other.name and other.name in _BY_ITSELF and min(one.confidence, other.confidence) >= SURE
