"""Finds what a thread is about, for a question in it that has no content of its own."""

from __future__ import annotations

from collections.abc import Sequence

from agent.questions.follow_ups import Antecedent
from agent.questions.intent import find_small_talk
from agent.questions.literals import find_quoted_messages
from agent.questions.mentions import find_mentions
from agent.questions.remarks import is_bare_question
from agent.questions.stack_traces import parse_error_name, parse_frames
from agent.questions.terms import find_content_terms


def find_thread_subject(messages: Sequence[str]) -> str:
    """Return the newest message that names code or an error, else the first that says anything; empty without one."""
    telling = [text for text in messages if _says_something(text)]
    naming = [text for text in telling if _names_code(text)]
    return next(iter([*naming[-1:], *telling[:1]]), "")


def find_thread_antecedent(messages: Sequence[str]) -> Antecedent | None:
    """Return what "it" means after these messages: the name or the file that was mentioned last."""
    for text in reversed(messages):
        mentions = find_mentions(text)
        if mentions.names:
            return Antecedent(symbol=mentions.names[-1], kind="", path="")
        if mentions.paths:
            return Antecedent(symbol="", kind="", path=mentions.paths[-1].path)
    return None


def _says_something(text: str) -> bool:
    return bool(find_content_terms(text)) and find_small_talk(text) is None and not is_bare_question(text)


def _names_code(text: str) -> bool:
    return bool(
        find_mentions(text).anything or parse_frames(text) or parse_error_name(text) or find_quoted_messages(text)
    )
