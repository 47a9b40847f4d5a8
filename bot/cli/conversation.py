"""A conversation from the command line: in a terminal, or over a pipe."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import TextIO

from bot.adapters.terminal.console import COMMANDS, ConsoleChat, InputLines, PipedInput
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome
from bot.adapters.terminal.suggestions import format_banner, suggest_questions
from bot.app import App, find_writer, list_local_models, load_answering, make_redactor
from bot.repositories.refresh import refresh_if_stale


async def chat(app: App, terminal: Terminal, stream: TextIO, *, interactive: bool) -> CommandOutcome:
    """Hold a conversation until the person leaves; answer the lines of a pipe one by one."""
    if interactive:
        await asyncio.gather(refresh_if_stale(app.index, terminal), asyncio.to_thread(load_modules))
    async with app.open_assistant() as agent:
        lines = await _begin_prompt(app, terminal) if interactive else PipedInput(stream)
        chat = ConsoleChat(app.index, agent, terminal=terminal, lines=lines, stoppable=interactive, refs=app.refs)
        good = await chat.run()
    return CommandOutcome(ok=good or interactive)


def load_modules() -> None:
    """Import the modules of the prompt and the first answer, which takes seconds, during indexing."""
    from bot.adapters.terminal.prompt import (
        PromptCompleter,  # noqa: F401
        PromptedInput,  # noqa: F401
    )

    load_answering()


async def _begin_prompt(app: App, terminal: Terminal) -> InputLines:
    """Say what the conversation is about, once everything is ready for the first question."""
    # Importing prompt_toolkit takes a quarter of a second, which only a terminal is worth.
    from bot.adapters.terminal.prompt import PromptCompleter, PromptedInput

    completer = PromptCompleter({name: what for name, (_, what) in COMMANDS.items()}, app.index.pin)
    questions = await suggest_questions(await app.index.pin())
    status, writer = await app.index.status(), await find_writer(app.settings)
    local = [] if writer else await list_local_models(app.settings)
    terminal.clear_line()
    terminal.write(format_banner(version("citebot"), status, writer, questions, local))
    history, mask = app.settings.home / "console_history", make_redactor(app.settings)
    return PromptedInput(history, terminal.note, mask, completer)
