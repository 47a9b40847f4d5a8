"""Questions put to the agent from the command line: one of them, or a conversation."""

from __future__ import annotations

import uuid
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

from bot import records
from bot.adapters.console import ConsoleChat, Lines, PipedLines, PromptedLines
from bot.adapters.terminal import Terminal
from bot.app import App
from bot.freshness import keep_current
from bot.lookups import Outcome


async def ask(app: App, terminal: Terminal, question: str, *, as_json: bool) -> Outcome:
    """Answer one question; nothing is remembered of it."""
    await keep_current(app.index, terminal)
    thread = f"console:local:ask:{uuid.uuid4().hex}"
    async with app.open_assistant() as assistant:
        try:
            answer = await terminal.follow(assistant.ask(question, thread=thread))
        finally:
            await assistant.forget(thread)
    if as_json:
        return Outcome(output=records.to_json(records.answer_record(answer)))
    terminal.show(answer, Path((await app.index.status()).path))
    return Outcome()


async def converse(app: App, terminal: Terminal, stream: TextIO, *, interactive: bool) -> Outcome:
    """Talk until the person leaves; the lines of a pipe are answered one after the other."""
    lines: Lines = PipedLines(stream)
    if interactive:
        await keep_current(app.index, terminal)
        found = await app.index.status()
        terminal.write(
            f"citebot {version('citebot')} on {found.repository} at {(found.commit or '')[:7]}. /help helps."
        )
        lines = PromptedLines(app.settings.home / "console_history", terminal.note)
    async with app.open_assistant() as assistant:
        chat = ConsoleChat(app.index, assistant, terminal=terminal, lines=lines, stoppable=interactive)
        good = await chat.run()
    return Outcome(ok=good or interactive)
