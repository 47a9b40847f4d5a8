"""One question put to the agent from the command line."""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from typing import Literal

from agent import AgentError
from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal, find_tree, show_answer
from bot.adapters.terminal.output import CommandOutcome
from bot.adapters.terminal.trace import RunTrace
from bot.app import App
from bot.repositories.refresh import refresh_if_stale

log = logging.getLogger(__name__)

NEEDS_REPLY = "This question waits for a reply. Ask it in `citebot chat`, where your next line is the reply."

Tracing = Literal["off", "on", "verbose"]


async def ask(
    app: App, terminal: Terminal, question: str, *, as_json: bool, tracing: Tracing = "off"
) -> CommandOutcome:
    """Answer one question; nothing is remembered of it. A success where the repository has what was asked for."""
    await refresh_if_stale(app.index, terminal)
    thread = f"console:local:ask:{uuid.uuid4().hex}"
    trace = RunTrace(terminal.note, verbose=tracing == "verbose") if tracing != "off" else None
    async with app.open_single() as assistant:
        try:
            events = assistant.ask(question, thread=thread)
            answer = await terminal.follow(events, trace, root=await find_tree(terminal, app.index))
        finally:
            try:
                await assistant.forget(thread)
            except AgentError as error:  # an answer is not lost because the database cannot be written any more
                log.warning("the question was not forgotten: %s", error)
    waits = answer.route == "paused"
    outcome = CommandOutcome(note=NEEDS_REPLY if waits else "", ok=answer.found and not waits)
    if as_json:
        return replace(outcome, output=output.to_json(output.answer_to_record(answer)))
    await show_answer(terminal, app.index, answer)
    return outcome
