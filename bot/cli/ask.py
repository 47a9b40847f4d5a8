"""One question put to the agent from the command line."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent import AgentError, Answer
from bot.adapters.terminal import output
from bot.adapters.terminal.display import Terminal, find_tree, show_answer, show_joint_answer
from bot.adapters.terminal.output import CommandOutcome
from bot.adapters.terminal.trace import RunTrace
from bot.app import App, open_joint_assistant
from bot.errors import SettingsError
from bot.repositories.names import RepositoryProfile, find_named, pin_name
from bot.repositories.ref_chooser import RefChooser, choose_ref, hold_ref
from bot.repositories.refresh import refresh_if_stale
from indexer import IndexerError

if TYPE_CHECKING:
    from bot.ports import Assistant, RepositoryIndex
    from bot.settings import Settings

log = logging.getLogger(__name__)

NEEDS_REPLY = "This question waits for a reply. Ask it in `citebot chat`, where your next line is the reply."

Tracing = Literal["off", "on", "verbose"]


async def ask(
    app: App, terminal: Terminal, question: str, *, at: str = "", as_json: bool, tracing: Tracing = "off"
) -> CommandOutcome:
    """Answer one question; nothing is remembered of it. A success where the repository has what was asked for.

    It is read `at` a branch, tag, commit or pull request, or at what the question itself names.
    """
    await refresh_if_stale(app.index, terminal)
    question = _leave_out_names(question, [(await app.index.status()).repository])
    choice = await choose_ref(app.index, RefChooser(app.refs), question, at=at)
    held = await hold_ref(app.index, RefChooser(app.refs), choice, terminal)
    root = await find_tree(terminal, app.index) if held is None else None
    names = () if held is None else (pin_name(held.repository, held.commit.sha),)
    async with app.open_single() as assistant:
        answer = await _follow(assistant, terminal, choice.question, names, root=root, tracing=tracing)
    if not as_json:
        await show_answer(terminal, app.index, answer, at=choice.ref)
    outcome = _make_outcome(answer, as_json=as_json)
    return replace(outcome, note=" ".join(filter(None, (choice.remark, outcome.note))))


async def ask_jointly(
    settings: Settings,
    indexes: Sequence[RepositoryIndex],
    terminal: Terminal,
    question: str,
    *,
    as_json: bool,
    tracing: Tracing = "off",
) -> CommandOutcome:
    """Answer one question about several repositories; one that cannot be read does not keep the others."""
    by_name = {(await index.status()).repository: index for index in indexes}
    if len(by_name) < len(indexes):
        raise SettingsError("Two of these repositories have the same name. Give one another `name` in citebot.toml.")
    for index in indexes:
        try:
            await refresh_if_stale(index, terminal)
        except IndexerError as error:  # the answer names the repository, and says why it is missing
            log.info("a repository could not be indexed: %s", error)
    question = _leave_out_names(question, [*by_name])
    async with open_joint_assistant(settings, by_name) as assistant:
        answer = await _follow(assistant, terminal, question, [*by_name], root=None, tracing=tracing)
    if not as_json:
        await show_joint_answer(terminal, by_name, answer)
    return _make_outcome(answer, as_json=as_json)


def _leave_out_names(question: str, names: Sequence[str]) -> str:
    """Leave out that a question is about all of these repositories ("across shop and website, ..."), as in a chat."""
    naming = find_named(question, dict.fromkeys(names, RepositoryProfile()))
    return naming.question if set(naming.repositories) == set(names) else question


async def _follow(
    assistant: Assistant,
    terminal: Terminal,
    question: str,
    names: Sequence[str] = (),
    *,
    root: Path | None,
    tracing: Tracing,
) -> Answer:
    """Follow a question to its answer, and let nothing be remembered of it."""
    thread = f"console:local:ask:{uuid.uuid4().hex}"
    trace = RunTrace(terminal.note, verbose=tracing == "verbose") if tracing != "off" else None
    try:
        return await terminal.follow(assistant.ask(question, thread=thread, repositories=names), trace, root=root)
    finally:
        try:
            await assistant.forget(thread)
        except AgentError as error:  # an answer is not lost because the database cannot be written any more
            log.warning("the question was not forgotten: %s", error)


def _make_outcome(answer: Answer, *, as_json: bool) -> CommandOutcome:
    waits = answer.route == "paused"
    outcome = CommandOutcome(note=NEEDS_REPLY if waits else "", ok=answer.found and not waits)
    return replace(outcome, output=output.to_json(output.answer_to_record(answer))) if as_json else outcome
