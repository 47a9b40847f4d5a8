"""What people wrote in a thread before citebot was called into it, as part of the question: marked, and bounded."""

from __future__ import annotations

from collections.abc import Sequence

from agent.guard.thread_quotes import HEADING, quote_line, with_background
from bot.markdown.formatting import to_one_line
from bot.messages import LONGEST_QUOTED, ThreadMessage

MOST_MESSAGES = 40
LONGEST = 1_600  # characters of a thread; the question comes first
LONGEST_MESSAGE = 400


def add_thread_context(question: str, thread: Sequence[ThreadMessage], *, room: int) -> str:
    """Append the newest messages of a thread to the question, as many as there is room for in characters.

    What gives orders is flagged and stays: nobody can have citebot refuse others by writing it, nor hide that they did.
    """
    left = min(LONGEST, room - len(question) - len(HEADING) - 4)
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
    """Quote what can be shown of a message; empty where it says nothing."""
    text = to_one_line(message.text[:LONGEST_QUOTED])
    if not text:
        return ""
    shown = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
    return quote_line("citebot" if message.own else to_one_line(message.author)[:40], shown)
