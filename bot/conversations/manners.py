"""Recognises messages that citebot leaves to people: small talk, and messages to others."""

from __future__ import annotations

import re

from agent import concerns_answer, find_small_talk, is_statement, parse_error_name, parse_frames
from bot.messages import IncomingMessage

# Small talk. Talk about citebot itself, or a request for a joke, still gets its line.
_TALK = frozenset({"farewell", "greeting", "remark", "thanks", "wordless"})
_LONGEST_ASKED = 1_000  # characters in which a question to anybody says that it is one
_CODE = re.compile(r"`[^`\n]{0,500}`|https?://\S{1,2000}")  # a question mark in them asks nothing
_QUESTION_MARK = re.compile(r"[?？¿]")
_ASKS = re.compile(
    r"\W*(?:how|what|where|which|why|who|when|wie|wo|was|welche\w?|warum|wer|wann|comment|où|pourquoi|quel\w{0,3}|cómo"
    r"|dónde|qué|cuál|come|dove|perché|quale|como|onde|qual|hoe|waar|waarom|как|где|почему|какой)\b",
    re.IGNORECASE,
)


def is_talk(text: str) -> bool:
    """Whether a text asks for nothing: thanks, "hmm", "I'll look tomorrow", an emoji."""
    return find_small_talk(text) in _TALK


def is_question(text: str) -> bool:
    """Whether people would read a text as a question, or as an error that they are to explain."""
    prose = _CODE.sub(" ", text)
    return bool(_QUESTION_MARK.search(prose) or _ASKS.match(prose) or parse_frames(text) or parse_error_name(text))


def is_for_anybody(text: str) -> bool:
    """Whether a question below an answer is citebot's anyone who asks it, and not one that people ask each other."""
    asked = text[:_LONGEST_ASKED]
    return is_question(asked) and concerns_answer(asked)


def is_left_to_people(message: IncomingMessage) -> bool:
    """Whether a message is for others, or for nobody in particular, although it was written where citebot listens.

    In "thanks! @bob, what do you think?" the thanks alone are for citebot, and want no answer.
    """
    if message.kind == "follow_up":
        return is_talk(message.text) or is_statement(message.text)
    if message.kind == "overheard":
        is_small_talk = find_small_talk(message.text) is not None  # a joke that nobody asked citebot for, too
        return message.mentions_others or is_small_talk or not is_question(message.text)
    if message.kind == "mention" and message.mentions_others:
        before = message.text.partition("@")[0]
        return any(map(str.isalnum, before)) and is_talk(before)
    return False
