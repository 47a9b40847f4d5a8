"""An agent that answers as the test lets it, and whose runs outlive it like those in a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.answers.extractive import describe_meanings
from agent.errors import CheckpointOvertaken, UnknownRun
from agent.events import AgentEvent
from agent.ports import Answer, RunPermit
from agent.questions.attachments import NOTHING_ATTACHED, Attachments
from agent.questions.intent import find_small_talk
from bot.ports import RefSource
from indexer.errors import NotIndexed
from indexer.types import Drift, IndexStatus, Location, Progress, RefreshReport
from tests.fakes.parts import ANSWER, FakeCode, FakeIndex, event


@dataclass
class Runs:
    """What is kept of runs: those broken off, and those that were answered."""

    broken_off: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    answered: dict[str, Answer] = field(default_factory=dict)


class FakeAnswerer:
    """Answers `Answer to: <question>` about the repository that it is asked about.

    With a `gate`, a run tells a stage and waits for it before it answers.
    """

    def __init__(
        self, *, runs: Runs | None = None, gate: asyncio.Event | None = None, route: str = "fast_path"
    ) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self.attached: list[Attachments] = []
        self.resumed: list[str] = []
        self.forgotten: list[str] = []
        self.remembered: dict[str, tuple[str, str]] = {}  # what runs of another kind have said, by their names
        self.stopped: list[str] = []
        self.replied: list[str] = []  # what was asked as the reply to what a run waited with
        self.begun = asyncio.Semaphore(0)
        self.most_at_once = 0
        self.error: Exception | None = None
        self.slow = self.fails = ""  # the repository about which no answer comes, or a failure
        self.found = True
        self.cites = False  # whether answers cite the code
        self.meanings: tuple[str, ...] = ()  # what else a question may be
        self.model: str | None = None
        self.begins_with = ""  # what is written before the gate
        self.url: str | None = None  # of what is found before the answer
        self.repeats = 1  # how often an answer says what was asked
        self.gate = gate
        self.runs = runs or Runs()
        self._route = route
        self._waiting: dict[str, str] = {}  # the runs that wait for a person, by their conversations
        self._stops: dict[str, asyncio.Event] = {}

    async def ask(
        self,
        question: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        run_id: str | None = None,
        permit: RunPermit | None = None,
        attachments: Attachments = NOTHING_ATTACHED,
    ) -> AsyncIterator[AgentEvent]:
        await self._check(permit)
        self.attached.append(attachments)
        self.asked.append((question, thread, ", ".join(repositories) or None))
        waits = self._waiting.pop(thread, None)
        if waits is not None and (permit is None or await permit.may_be_replied_to(waits)):
            self.replied.append(question)
        if self._route == "paused":
            self._waiting[thread] = run_id or "run"
        async for told in self._told(question, run_id or "run", tuple(repositories) or ("demo",)):
            yield told

    async def resume(
        self, run_id: str, *, thread: str, reply: str | None = None, permit: RunPermit | None = None
    ) -> AsyncIterator[AgentEvent]:
        if run_id in self.runs.answered or run_id in self.runs.broken_off:
            await self._check(permit)
        if run_id in self.runs.answered:
            yield event("answer", answer=self.runs.answered[run_id])
            return
        if run_id not in self.runs.broken_off:
            raise UnknownRun("There is no such run.")
        self.resumed.append(run_id)
        question, repositories = self.runs.broken_off[run_id]
        async for told in self._told(question, run_id, repositories):
            yield told

    async def stop(self, run_id: str) -> bool:
        self.stopped.append(run_id)
        if run_id in self._stops:
            self._stops[run_id].set()
        return run_id in self._stops

    async def forget(self, thread: str, *, run_id: str | None = None) -> None:
        self.forgotten.append(thread)

    async def remember(self, question: str, answer: Answer, *, thread: str, run_id: str) -> None:
        self.remembered[run_id] = question, answer.text

    async def _check(self, permit: RunPermit | None) -> None:
        if permit is not None and not await permit.may_begin():
            raise CheckpointOvertaken("Another process has continued this conversation.")

    async def _told(self, question: str, run_id: str, repositories: tuple[str, ...]) -> AsyncIterator[AgentEvent]:
        self._stops[run_id] = asyncio.Event()
        self.runs.broken_off[run_id] = question, repositories
        self.most_at_once = max(self.most_at_once, len(self._stops))
        try:
            yield event("step_start", node="retrieval", stage="Searching `send`")
            label = f"{repositories[0]}/" if len(repositories) > 1 else ""
            found = Location(path=f"{label}src/session.py", start_line=1, end_line=9)
            yield event("evidence", locations=[found], urls=[self.url])
            figures = {"input_tokens": 100, "output_tokens": 20, "seconds": 1.0}
            said: dict[str, Any] = {"messages": [], "reply": None, "error": "", "error_type": ""}
            yield event("model_end", model="m", task="t", **figures, **said)
            if self.begins_with:
                yield event("token", text=self.begins_with)
            self.begun.release()
            if self.error is not None:
                raise self.error
            read = [name for name in repositories if name != self.fails]
            if not read:
                raise NotIndexed("The index is gone.")
            stopped = await self._stopped(run_id, asyncio.Event() if self.slow in repositories else self.gate)
            name, _, commit = ", ".join(read).partition("@")
            answer = replace(self._answer(question, stopped=stopped), repository=name)
            answer = replace(answer, commit=commit) if commit else answer
            if len(repositories) > 1:
                missing = {name: "The index is gone." for name in repositories if name not in read}
                commits = dict.fromkeys(read, ANSWER.commit)
                answer = replace(answer, commit="", commits={} if stopped else commits, missing=missing)
            del self.runs.broken_off[run_id]
            if not stopped:
                self.runs.answered[run_id] = answer
                yield event("token", text=answer.text)
            yield event("answer", answer=answer)
        finally:
            del self._stops[run_id]

    async def _stopped(self, run_id: str, gate: asyncio.Event | None) -> bool:
        if gate is None:
            return False
        waits = [asyncio.ensure_future(each.wait()) for each in (self._stops[run_id], gate)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._stops[run_id].is_set()

    def _answer(self, question: str, *, stopped: bool) -> Answer:
        if stopped:
            return replace(ANSWER, text="Stopped, as you asked.", citations=(), commit="", route="stopped")
        offered = f"\n\n{describe_meanings(self.meanings)}" if self.meanings else ""
        return replace(
            ANSWER,
            text=f"Answer to: {' '.join([question] * self.repeats)}{offered}",
            is_pointing="I can only point" in question,
            meanings=self.meanings,
            citations=ANSWER.citations if self.cites else (),
            found=self.found,
            model=self.model,
            route="out_of_scope" if find_small_talk(question) else self._route,
        )


class FakeRepositories:
    """Repositories by name, each a fake index."""

    def __init__(self, *names: str) -> None:
        self.indexes = {name: FakeIndex() for name in names or ("demo",)}
        self.refs: dict[str, RefSource] = {}
        self.branch = "main"

    def list_names(self) -> Sequence[str]:
        return tuple(self.indexes)

    async def status(self, name: str) -> IndexStatus:
        return replace(await self.indexes[name].status(), repository=name, branch=self.branch)

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        return await self.indexes[name].drift(commit, paths)

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        loop = asyncio.get_running_loop()

        def tell(told: Progress) -> None:
            if progress is not None:
                loop.call_soon_threadsafe(progress, told)

        return await self.indexes[name].refresh(full=full, progress=tell)

    async def pin_existing(self, name: str) -> FakeCode:
        if name not in self.indexes:
            raise NotIndexed(f"There is no repository {name!r} here.")
        return await self.indexes[name].pin()
