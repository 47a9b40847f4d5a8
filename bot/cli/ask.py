"""Questions put to the agent from the command line: one of them, or a conversation."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TextIO

from agent import AgentError
from bot.adapters.terminal import output
from bot.adapters.terminal.console import ConsoleChat, InputLines, PipedInput, PromptedInput
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome
from bot.adapters.terminal.trace import RunTrace
from bot.app import App, make_redactor
from bot.repositories.refresh import refresh_if_stale

log = logging.getLogger(__name__)

NEEDS_REPLY = "This question waits for a reply. Ask it in `citebot chat`, where your next line is the reply."

Tracing = Literal["off", "on", "verbose"]


async def ask(
    app: App, terminal: Terminal, question: str, *, as_json: bool, tracing: Tracing = "off"
) -> CommandOutcome:
    """Answer one question; nothing is remembered of it."""
    await refresh_if_stale(app.index, terminal)
    thread = f"console:local:ask:{uuid.uuid4().hex}"
    trace = RunTrace(terminal.note, verbose=tracing == "verbose") if tracing != "off" else None
    async with app.open_assistant() as assistant:
        try:
            answer = await terminal.follow(assistant.ask(question, thread=thread), trace)
        finally:
            try:
                await assistant.forget(thread)
            except AgentError as error:  # an answer is not lost because the database cannot be written any more
                log.warning("the question was not forgotten: %s", error)
    waits = answer.route == "paused"
    outcome = CommandOutcome(note=NEEDS_REPLY if waits else "", ok=not waits)
    if as_json:
        return replace(outcome, output=output.to_json(output.answer_to_record(answer)))
    terminal.show(answer, Path((await app.index.status()).path))
    return outcome


async def chat(app: App, terminal: Terminal, stream: TextIO, *, interactive: bool) -> CommandOutcome:
    """Hold a conversation until the person leaves; the lines of a pipe are answered one after the other."""
    lines: InputLines = PipedInput(stream)
    if interactive:
        await refresh_if_stale(app.index, terminal)
        found = await app.index.status()
        terminal.write(
            f"citebot {version('citebot')} on {found.repository} at {(found.commit or '')[:7]}. /help lists commands."
        )
        lines = PromptedInput(app.settings.home / "console_history", terminal.note, make_redactor(app.settings))
    async with app.open_assistant() as assistant:
        chat = ConsoleChat(app.index, assistant, terminal=terminal, lines=lines, stoppable=interactive)
        good = await chat.run()
    return CommandOutcome(ok=good or interactive)
