"""Parts a message that asks several things into its questions."""

from __future__ import annotations

from agent.questions.mentions import find_mentions
from indexer.text.linear_patterns import compile_pattern

_MOST = 3
_LONGEST = 600
_LEAST_WORDS = 3
_END = compile_pattern(r"\?\s+(?:(?:and|also|und|et|y)\s+)?")
_ASKS = compile_pattern(
    r"(?i)(?:who|what|which|where|when|why|how|does|do|is|are|can|list|show|wer|was|welche[rsn]?|wo|wann|warum|wie|qui"
    r"|que|quel(?:le)?s?|où|comment|pourquoi|quién|qué|dónde|cómo|cuál(?:es)?)\b.*"
)
# A second question that is about what the first one names: "where is pay defined and who calls it?"
_JOINED = compile_pattern(
    r"(?i)(?P<first>.+?),?\s+(?:and|und|et|y)\s+(?P<second>(?:who|what|wer|was|wo|(?:where|when|why|how|what|which"
    r"|wann|warum|wie)\s+(?:is|was|are|were|does|did|do|has|can|wird|wurde|ist|hat))\s(?:\S+\s){0,6}(?:it|es)\b.*)"
)


def split_questions(message: str) -> list[str]:
    """Return the questions of a message, at most three; the message itself where it asks one thing."""
    line = " ".join(message[:_LONGEST].split())
    if len(message) > _LONGEST or "`" in line or "\n" in message.strip():
        return [message]
    ended = (part.strip(" ?") for part in _END.split(line))
    parts = [part for one in ended if one for part in _split_joined(one)]
    asks = [len(part.split()) >= _LEAST_WORDS and _ASKS.fullmatch(part) is not None for part in parts]
    return [f"{part}?" for part in parts] if 1 < len(parts) <= _MOST and all(asks) else [message]


def _split_joined(question: str) -> list[str]:
    """Part a question from one that is joined to it, and leans on the name in it."""
    found = _JOINED.fullmatch(question)
    if found is None or not find_mentions(found["first"]).names:
        return [question]
    return [found["first"], found["second"]]
