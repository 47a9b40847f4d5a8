"""What people wrote in a thread before citebot was called into it, as part of the question: marked, and bounded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent import BACKGROUND_HEADING, MAX_QUESTION, quote_line, with_background
from bot.errors import ChatError
from bot.markdown.formatting import to_one_line
from bot.messages import LONGEST_QUOTED, IncomingMessage, ThreadMessage
from bot.ports import ChatPlatform

MOST_MESSAGES = 40
LONGEST_QUESTION = MAX_QUESTION - 100  # characters, the thread around it included
LONGEST = 1_600  # characters of a thread; the question comes first
LONGEST_MESSAGE = 400

log = logging.getLogger(__name__)


async def read_question(message: IncomingMessage, platform: ChatPlatform, mask: Callable[[str], str]) -> str:
    """Return the question with the thread that citebot was called into; a thread that cannot be read is left out."""
    if message.kind != "mention" or not message.in_thread:
        return message.text
    try:
        thread = await platform.read_thread(message.place, before=message.id, limit=MOST_MESSAGES)
    except ChatError as error:
        log.warning("a thread was not read: %s", error)
        return message.text

    def add_people() -> str:
        people = [earlier for earlier in thread if not earlier.own]
        masked = [replace(earlier, text=mask(earlier.text), author=mask(earlier.author)) for earlier in people]
        return add_thread_context(message.text, masked, room=LONGEST_QUESTION)

    return await asyncio.to_thread(add_people)


def add_thread_context(question: str, thread: Sequence[ThreadMessage], *, room: int) -> str:
    """Append the newest messages of a thread to the question, as many as there is room for in characters.

    What gives orders is flagged and stays: nobody can have citebot refuse others by writing it, nor hide that they did.
    """
    left = min(LONGEST, room - len(question) - len(BACKGROUND_HEADING) - 4)
    lines: list[str] = []
    for message in reversed(thread):
        line = _quote_message(message)
        if not line:
            continue
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return with_background(question, lines[::-1])


def _quote_message(message: ThreadMessage) -> str:
    """Quote what can be shown of a message; empty where it has no text."""
    text = to_one_line(message.text[:LONGEST_QUOTED])
    if not text:
        return ""
    shown = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
    return quote_line("citebot" if message.own else to_one_line(message.author)[:40], shown)
