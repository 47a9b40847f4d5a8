"""Reads what people wrote in Discord as plain Markdown, and finds names for threads: pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.markdown.showing import to_one_line

LONGEST_NAME = 90  # Discord takes 100, and does not say of what
UNNAMED = "Question"

_USER = re.compile(r"<@!?(\d{1,20})>")
_ROLE = re.compile(r"<@&(\d{1,20})>")
_CHANNEL = re.compile(r"<#(\d{1,20})>")
_EMOJI = re.compile(r"<a?(:\w{2,32}:)\d{1,20}>")


def to_plain_markdown(text: str, *, own: frozenset[int], users: Mapping[int, str], places: Mapping[int, str]) -> str:
    """Return the words as they were typed, without mentions of the bot: `own` are the ids of its user and its role.

    `users` and `places` are the names of those who are mentioned; what has none keeps its id.
    """

    def person(found: re.Match[str]) -> str:
        number = int(found[1])
        return "" if number in own else f"@{users.get(number, number)}"

    text = _ROLE.sub(person, _USER.sub(person, text))
    text = _CHANNEL.sub(lambda found: f"#{places.get(int(found[1]), found[1])}", text)
    return _EMOJI.sub(r"\1", text).strip()


def make_thread_name(question: str) -> str:
    """Name a thread after the question that begins it."""
    words = to_one_line(question).replace("`", "").replace("*", "").strip()
    if not any(char.isalnum() for char in words):
        return UNNAMED
    name = words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1].rstrip()}…"
    return name.encode("utf-16-le")[: 2 * LONGEST_NAME].decode("utf-16-le", "ignore")
