"""Quotes the messages of a thread from before citebot was called into it: without names, and bounded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent import BACKGROUND_HEADING, MAX_QUESTION, quote_line
from bot.errors import ChatError
from bot.markdown.formatting import to_one_line
from bot.messages import LONGEST_QUOTED, IncomingMessage, ThreadMessage
from bot.ports import ChatPlatform

MOST_MESSAGES = 40
LONGEST_QUESTION = MAX_QUESTION - 100  # characters, the thread around it included
MAX_CHARACTERS = 1_600  # characters of a thread; the question comes first
LONGEST_MESSAGE = 400

log = logging.getLogger(__name__)


async def read_thread_quotes(
    message: IncomingMessage, platform: ChatPlatform, mask: Callable[[str], str]
) -> Sequence[str]:
    """Quote the thread that citebot was called into, a message a line; a thread that cannot be read is left out."""
    if message.kind != "mention" or not message.in_thread:
        return ()
    try:
        thread = await platform.read_thread(message.place, before=message.id, limit=MOST_MESSAGES)
    except ChatError as error:
        log.warning("a thread was not read: %s", error)
        return ()
    room = LONGEST_QUESTION - len(message.text)
    return await asyncio.to_thread(quote_thread, thread, room=room, mask=mask)


def quote_thread(
    thread: Sequence[ThreadMessage],
    *,
    room: int,
    mask: Callable[[str], str] = str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[str]:
    """Quote the newest messages of people, oldest first, within the room in characters.

    People are numbered, except those of `names`: neither a model nor an answer learns who they are. Orders are flagged
    and stay: writing one can neither have citebot refuse others, nor hide that they wrote it.
    """
    people = [message for message in thread if not message.own]
    authors = dict.fromkeys(each.author for each in people)
    called = {author: names.get(author, f"person {number}") for number, author in enumerate(authors, 1)}
    left = min(MAX_CHARACTERS, room - len(BACKGROUND_HEADING) - 4)
    lines: list[str] = []
    for message in reversed(people):
        text = to_one_line(mask(message.text)[:LONGEST_QUOTED])
        if not text:
            continue
        shown = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
        line = quote_line(called[message.author], shown)
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return lines[::-1]
