"""One question put to the agent from the command line."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome
from bot.adapters.terminal.questions import TerminalQuestions
from bot.adapters.terminal.trace import RunTrace
from bot.app import App, open_joint_assistant

NEEDS_REPLY = "This question waits for a reply. Ask it in `citebot chat`, where your next line is the reply."

Tracing = Literal["off", "on", "verbose"]


async def ask(
    apps: Sequence[App], terminal: Terminal, question: str, *, at: str = "", as_json: bool, tracing: Tracing = "off"
) -> CommandOutcome:
    """Answer one question about all of the repositories, without remembering it.

    Succeeds if they have a clear answer. A single repository is read `at` a branch, tag, commit or pull request, or at
    the one that the question names.
    """
    questions = make_single_questions(apps, terminal)
    trace = RunTrace(terminal.note, verbose=tracing == "verbose") if tracing != "off" else None
    shown = await questions.ask(question, conversation=make_thread(), at=at, trace=trace, is_shown=not as_json)
    waits = shown.answer.route == "paused"
    outcome = CommandOutcome(note=NEEDS_REPLY if waits else "", ok=shown.answer.found and not waits)
    return replace(outcome, output=output.to_json(output.answer_to_record(shown.answer))) if as_json else outcome


def make_single_questions(apps: Sequence[App], terminal: Terminal) -> TerminalQuestions:
    """Return the function that answers separate questions about all of the repositories."""
    first, *others = apps
    return TerminalQuestions(
        terminal=terminal, indexes=[app.index for app in apps], refs={} if others else first.refs, remembers=False,
        open_agent=partial(open_joint_assistant, first.settings) if others else lambda _: first.open_single(),
        prices=first.settings.prices,
    )  # fmt: skip


def make_thread() -> str:
    """Name the conversation of one question."""
    return f"console:local:ask:{uuid.uuid4().hex}"
