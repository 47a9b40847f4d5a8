"""A goal run at the command line: proposed, approved, shown while it runs, and printed as a patch."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import AgentError, AgentEvent, Answer, GoalRequest, GoalVerdict, UnknownRun, parse_decision
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome, to_json
from bot.app import App, make_redactor
from bot.errors import AnswerFailed, BotError, GoalRunUnavailable
from bot.maintenance.goal_run_files import GoalRunFiles
from bot.markdown import replace_control_characters, to_one_line
from bot.ports import GoalRuns
from bot.repositories.refresh import refresh_if_stale
from indexer import IndexerError

_LONGEST_REASON = 300


class GoalProgress:
    """Writes the lines of one run, with each command in full before it runs."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def take(self, event: AgentEvent) -> None:
        """Write the line of a notable event."""
        if line := describe_goal_event(event):
            self._write(line)


def describe_goal_event(event: AgentEvent) -> str:
    """Describe an event of a goal run in a line; empty for a minor one."""
    payload = event.payload
    match event.kind:
        case "step_start" if payload["node"] == "plan":
            return to_one_line(str(payload["stage"]))
        case "command":
            return f"  $ {to_one_line(str(payload['line']))}"
        case "tool_start" if payload["tool"] not in {"bash_exec", "run_pytest"}:  # their commands are shown anyway
            return f"  {payload['label']} {to_one_line(str(payload['shown']) or str(payload['tool']))}"
        case "goal_check":
            reason = to_one_line(str(payload["reason"]).partition("\n\n")[0])[:_LONGEST_REASON]
            return f"  {payload['label']}: {reason}"
        case _:
            return ""


NOT_APPROVED = "Nothing was run: it was not approved. Add --yes to approve it."
MASKED = "Secrets in the patch are masked, so it may not apply. --patch FILE writes it unmasked."
UNSHOWN = "The patch contains characters that a terminal cannot show. --patch FILE writes it unchanged."
QUESTION = "Start it? [y/N] "
OTHER_RUN = (
    "The goal run {name} is working on this repository as well. Both can continue: each has its own copy, and their "
    "patches may touch the same lines."
)
HOW_TO_RESUME = "This is the goal run {name}. If it is interrupted, `citebot goal resume {name}` continues it."
INTERRUPTED = "The goal run {name} was interrupted. `citebot goal resume {name}` continues it."
NOTHING_SAVED = "Nothing of the goal run {name} was saved before it was interrupted. Start it again."


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalOptions:
    """The approval of a run and the form of its result; `read` asks a person, None without one."""

    is_approved: bool
    as_json: bool
    patch: Path | None
    read: Callable[[str], str] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The last event of a run."""

    answer: Answer
    verdict: GoalVerdict | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _FollowedRun:
    """A run followed at the terminal, with its displayed name."""

    name: str
    goals: GoalRuns
    files: GoalRunFiles
    terminal: Terminal
    options: GoalOptions

    @property
    def thread(self) -> str:
        """The agent's thread of the run."""
        return f"console:local:goal:{self.name}"

    async def finish(self, events: AsyncIterator[AgentEvent]) -> Ended:
        """Finish a run and delete it; keep an interrupted one, and tell the person how to continue."""
        try:
            ended = await self._follow(events)
        except asyncio.CancelledError:
            self.terminal.note(INTERRUPTED.format(name=self.name))
            raise
        except AnswerFailed:
            await self._forget()
            raise
        await self._forget()
        return ended

    async def _follow(self, events: AsyncIterator[AgentEvent]) -> Ended:
        """Show the run to its end; when it waits for a person, ask at the terminal."""
        ended = await _show(events, self.terminal)
        while ended.answer.route == "paused":
            reply = "approve" if await _ask(self.options, f"{ended.answer.text} ") else "abort"
            ended = await _show(self.goals.resume(self.thread, thread=self.thread, reply=reply), self.terminal)
        return ended

    async def _forget(self) -> None:
        await self.goals.forget(self.thread)
        self.files.remove(self.name)


async def run_goal(app: App, terminal: Terminal, request: GoalRequest, options: GoalOptions) -> CommandOutcome:
    """Propose a run, and take it to its end if it is approved; succeeds if its goal is reached."""
    return await _tell_refusals(app, options, request.goal, _propose_and_run(app, terminal, request, options))


async def resume_goal(app: App, terminal: Terminal, name: str | None, options: GoalOptions) -> CommandOutcome:
    """Continue an interrupted run, by default the last one of the repository, and take it to its end."""
    return await _tell_refusals(app, options, None, _take_up(app, terminal, name, options))


async def _tell_refusals(
    app: App, options: GoalOptions, goal: str | None, work: Awaitable[CommandOutcome]
) -> CommandOutcome:
    """Report a refused or failed run, as JSON if requested."""
    try:
        return await work
    except (AgentError, BotError, IndexerError) as error:
        if not options.as_json:
            raise
        return _refuse(goal, make_redactor(app.settings)(str(error)))


async def _propose_and_run(app: App, terminal: Terminal, request: GoalRequest, options: GoalOptions) -> CommandOutcome:
    await refresh_if_stale(app.index, terminal)
    await _tell_uncommitted(app, terminal, request)
    redact = make_redactor(app.settings)
    async with app.open_goals() as goals:
        proposal = await goals.propose(request)
        terminal.note(proposal.to_text())
        if not options.is_approved and not await _ask(options, QUESTION):
            return (
                _refuse(request.goal, NOT_APPROVED) if options.as_json else CommandOutcome(note=NOT_APPROVED, ok=False)
            )
        files, path = GoalRunFiles(app.settings.home), (await app.index.status()).path
        for other in await asyncio.to_thread(files.list_alive, path):
            terminal.note(OTHER_RUN.format(name=other.name))
        with files.begin(path, redact(request.task)) as note:
            terminal.note(HOW_TO_RESUME.format(name=note.name))
            run = _FollowedRun(name=note.name, goals=goals, files=files, terminal=terminal, options=options)
            ended = await run.finish(goals.start(proposal, thread=run.thread, run_id=run.thread))
    return await _hand_over(ended, options, redact)


def _refuse(goal: str | None, reason: str) -> CommandOutcome:
    """Report as JSON why nothing ran, or there is no verdict."""
    return CommandOutcome(output=to_json({"goal": goal, "achieved": False, "error": reason}), ok=False)


async def _take_up(app: App, terminal: Terminal, name: str | None, options: GoalOptions) -> CommandOutcome:
    files, path = GoalRunFiles(app.settings.home), (await app.index.status()).path
    with files.take_up(name, path) as note:
        terminal.note(f"Resuming the goal run {note.name}: {to_one_line(note.task)}")
        async with app.open_goals() as goals:
            run = _FollowedRun(name=note.name, goals=goals, files=files, terminal=terminal, options=options)
            try:
                ended = await run.finish(goals.resume(run.thread, thread=run.thread))
            except UnknownRun as error:
                files.remove(note.name)
                raise GoalRunUnavailable(NOTHING_SAVED.format(name=note.name)) from error
    return await _hand_over(ended, options, make_redactor(app.settings))


async def _tell_uncommitted(app: App, terminal: Terminal, request: GoalRequest) -> None:
    """Say which named files have uncommitted changes, which the run ignores."""
    named = [str(one) for key in ("select", "paths", "argv") for one in request.arguments.get(key, ())]
    paths = [one.partition("::")[0].removeprefix("./") for one in named if not one.startswith(("/", "-"))]
    paths = [path for path in paths if path and ".." not in path.split("/")]
    status = await app.index.status()
    if paths and status.commit and (left := (await app.index.drift(status.commit, paths)).uncommitted):
        terminal.note(f"Left out: the uncommitted changes in {', '.join(map(to_one_line, left))}. Commit them first.")


async def _ask(options: GoalOptions, question: str) -> bool:
    """Ask the person at the terminal; without one, there is no approval."""
    if options.read is None:
        return False
    return parse_decision(await asyncio.to_thread(options.read, question)) == "approve"


async def _show(events: AsyncIterator[AgentEvent], terminal: Terminal) -> Ended:
    progress = GoalProgress(terminal.note)
    answer: Answer | None = None
    verdict: GoalVerdict | None = None
    async for event in events:
        progress.take(event)
        if event.kind == "answer":
            answer = event.payload["answer"]
        elif event.kind == "goal_end":
            verdict = event.payload["verdict"]
    if answer is None or answer.route in {"failed", "stopped"}:
        raise AnswerFailed(answer.text if answer is not None else "The run ended without a verdict. Try again.")
    return Ended(answer=answer, verdict=verdict)


async def _hand_over(ended: Ended, options: GoalOptions, redact: Callable[[str], str]) -> CommandOutcome:
    """Print the patch or write it to its file; then print the verdict, as JSON if requested."""
    verdict = ended.verdict
    if verdict is None:
        raise AssertionError("a run that has ended has a verdict")
    text = verdict.patch.decode(errors="replace")
    masked = redact(text)
    if options.patch is not None:
        await asyncio.to_thread(_write_patch, options.patch, verdict.patch)
    if options.as_json:
        return CommandOutcome(output=to_json(_make_record(verdict, masked, redact)), ok=verdict.achieved)
    if options.patch is not None or not verdict.patch:
        return CommandOutcome(output=ended.answer.text, ok=verdict.achieved)
    shown = replace_control_characters(masked)  # a terminal would obey some of them
    warning = f"\n\n{MASKED}" if masked != text else f"\n\n{UNSHOWN}" if shown != masked and sys.stdout.isatty() else ""
    return CommandOutcome(
        output=shown.removesuffix("\n"),
        data=verdict.patch if masked == text else b"",
        note=ended.answer.text + warning,
        ok=verdict.achieved,
    )


def _write_patch(path: Path, patch: bytes) -> None:
    """Write a patch that only its owner may read, because it may hold secrets of the repository."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(patch)


def _make_record(verdict: GoalVerdict, patch: str, redact: Callable[[str], str]) -> dict[str, Any]:
    return {
        "goal": verdict.goal,
        "achieved": verdict.achieved,
        "reason": redact(verdict.reason),
        "details": json.loads(redact(json.dumps(dict(verdict.details)))),
        "ended_by": verdict.ended_by,
        "patch": patch,
        "changed": list(verdict.changed),
        "refused": list(verdict.refused),
        "commands": list(verdict.commands),
        "repository": verdict.repository,
        "commit": verdict.commit,
        "iterations": verdict.iterations,
        "model": verdict.model,
        "model_calls": verdict.calls,
        "input_tokens": verdict.usage.input_tokens,
        "output_tokens": verdict.usage.output_tokens,
    }
