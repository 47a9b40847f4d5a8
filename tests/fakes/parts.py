"""In-memory doubles of what the bot needs: an index, the code in it, and an assistant that follows a script."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agent.events import AgentEvent, EventKind
from agent.ports import Answer, CatchUp, Citation
from bot.app import App
from bot.ports import Answerer, GoalRuns
from bot.settings import RepositoryTable, Settings
from indexer.errors import IndexerError, NotIndexed
from indexer.generations.generation_cache import count_folders
from indexer.generations.repository_facts import describe_repository
from indexer.types import (
    CallSite,
    Commit,
    Coverage,
    Definition,
    Drift,
    FileEntry,
    FileHistory,
    FileImport,
    Filters,
    Hit,
    IndexStatus,
    LeftOut,
    Location,
    Matches,
    Passage,
    Progress,
    RefreshReport,
    RegistrationKind,
    RegistrationSite,
    RepositoryOverview,
    SearchAim,
    SearchMode,
    Subclass,
    Symbol,
)
from tests.fakes.code import FakeCode as MemoryCode
from tests.fakes.code import FakePast

HEAD = "0123456789abcdef0123456789abcdef01234567"
SEND = Definition(
    path="src/session.py",
    symbol=Symbol(
        name="send",
        qualified_name="Session.send",
        kind="method",
        signature="def send(self, event: Event) -> None",
        doc="Send one event.",
        start_line=10,
        end_line=24,
    ),
)
CALL = CallSite(path="src/main.py", line=7, name="send", caller=None, callee=SEND, ambiguous=True)
HIT = Hit(
    location=Location(path="src/session.py", start_line=10, end_line=24),
    text="def send(self, event): ...",
    score=0.5,
    language="python",
    source_type="code",
    scope="Session",
    symbols=(SEND.symbol,),
)
CITATION = Citation(mark=1, path="src/session.py", start_line=10, end_line=24, commit=HEAD, url=None)
ANSWER = Answer(
    text="Events are sent by `Session.send` [1].",
    citations=(CITATION,),
    repository="demo",
    commit=HEAD,
    intent="new_question",
    route="fast",
    model=None,
    seconds=0.25,
    found=True,
)


class FakeCode:
    """A repository with one method in it, `Session.send`, and the names and files that a test adds.

    Remembers what was searched for. `gate` holds lookups until it is set.
    """

    repository = "demo"
    commit = Commit(sha=HEAD, branch="main", committed_at=0, subject="Begin")

    def __init__(self) -> None:
        self.searches: list[tuple[str, int, Filters | None, SearchMode]] = []
        self.names: list[str] = ["send", "Session.send"]
        self.paths: list[str] = []
        self.importers: Sequence[str] = ("src/main.py",)
        self.gate: asyncio.Event | None = None
        self.catch_up: CatchUp | None = None

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
    ) -> Sequence[Hit]:
        self.searches.append((query, limit, filters, mode))
        return [HIT] if "send" in query else []

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        return Passage(location=HIT.location, text=HIT.text, language="python")

    async def definitions(self, name: str) -> Sequence[Definition]:
        if self.gate is not None:
            await self.gate.wait()
        if name in {"send", "Session.send"} & set(self.names):
            return [SEND]
        plain = dataclasses.replace(SEND.symbol, name=name.rpartition(".")[2], qualified_name=name)
        return [Definition(path="src/more.py", symbol=plain)] if name in self.names else []

    async def find_enclosing(self, location: Location) -> Sequence[Definition]:
        return []

    async def find_siblings(self, definition: Definition) -> Sequence[Definition]:
        return []

    @property
    def past(self) -> FakePast:
        return FakePast(MemoryCode({}, commits=()))

    async def list_left_out(self) -> Sequence[LeftOut]:
        return []

    def follow(self, catch_up: CatchUp | None) -> None:
        """Wait for newer commits before each "no"."""
        self.catch_up = catch_up

    async def coverage(self, *words: str) -> Coverage:
        is_behind = await self.catch_up() if self.catch_up is not None else False
        return Coverage(files=len(self.paths), skipped={}, is_behind=is_behind)

    async def complete_name(self, beginning: str, *, limit: int = 20) -> Sequence[str]:
        plain = beginning.rpartition(".")[2]
        return [name for name in self.names if name.rpartition(".")[2].startswith(plain)][:limit]

    async def list_central(self, *, limit: int = 20) -> Sequence[Definition]:
        return [SEND]

    async def callers(self, name: str, *, unresolved: bool = False) -> Sequence[CallSite]:
        return [CALL] if name.rpartition(".")[2] == "send" else []

    async def callees(self, name: str) -> Sequence[CallSite]:
        return []

    async def list_file_imports(self) -> Sequence[FileImport]:
        return [FileImport(path=path, line=1, targets=("src/session.py",)) for path in self.importers]

    async def subclasses(self, name: str) -> Sequence[Subclass]:
        return []

    async def registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        return []

    async def files(self) -> Sequence[FileEntry]:
        return [FileEntry(path=path, language="python", source_type="code", lines=9) for path in self.paths]

    async def overview(self) -> RepositoryOverview:
        """Describe the files as the indexer does."""
        return describe_repository(self.repository, await self.files(), await self.folders(), "".join)

    async def folders(self) -> Mapping[str, int]:
        return count_folders(self.paths)

    async def grep(self, *patterns: str, path: str = "", limit: int = 50) -> Matches:
        return Matches(lines=(), files_searched=0, complete=True)

    async def history(self, path: str, *, line: int = 0, limit: int = 20) -> FileHistory:
        return FileHistory(path=path, revisions=(), complete=True)

    def permalink(self, location: Location, commit: str = "") -> str | None:
        return None

    def name_cells(self, location: Location) -> str:
        return ""


class FakeIndex:
    """An index that becomes current when it is refreshed, unless it was given an error to raise.

    With `endless` set a refresh reports progress from a thread until the callback stops it.
    """

    def __init__(
        self,
        *,
        commit: str | None = HEAD,
        current: bool = True,
        error: IndexerError | None = None,
        warnings: tuple[str, ...] = (),
        endless: bool = False,
        path: str = "/demo",
        uncommitted: tuple[str, ...] = (),
    ) -> None:
        self._uncommitted = uncommitted
        self.code = FakeCode()
        self.refreshes: list[bool] = []
        self.sweeps = 0
        self.stopped_by: BaseException | None = None
        self.begun = threading.Event()
        self._commit = commit
        self._current = current
        self._error = error
        self._warnings = warnings
        self._endless = endless
        self.held: threading.Event | None = None
        self._path = path

    async def is_current(self) -> bool:
        return self._current

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        return Drift(behind=0, changed=(), uncommitted=tuple(path for path in self._uncommitted if path in paths))

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        self.refreshes.append(full)
        if self._error:
            raise self._error
        report = progress or (lambda _: None)
        await asyncio.to_thread(self._work, report)
        previous, self._commit, self._current = self._commit, HEAD, True
        return RefreshReport(
            commit=HEAD,
            previous=previous,
            changed=3,
            removed=1,
            files=12,
            chunks=1234,
            seconds=0.5,
            warnings=self._warnings,
        )

    def _work(self, report: Callable[[Progress], None]) -> None:
        try:
            report(Progress(stage="parsing", done=1, total=3))
            self.begun.set()
            if self.held is not None:
                self.held.wait()
            while self._endless:
                report(Progress(stage="parsing", done=2, total=3))
        except BaseException as error:
            self.stopped_by = error
            raise

    async def sweep(self) -> None:
        self.sweeps += 1
        if self._error:
            raise self._error

    async def pin(self) -> FakeCode:
        if self._commit is None:
            raise NotIndexed("demo has not been indexed yet.")
        return self.code

    async def status(self) -> IndexStatus:
        return IndexStatus(
            repository="demo",
            path=self._path,
            commit=self._commit,
            branch="main",
            indexed_at=0.0 if self._commit else None,
            commits_behind=0 if self._commit else None,
            files=12,
            chunks=1234,
            symbols=56,
            embedder="static",
            disk_bytes=2_500_000,
            skipped={"binary": 2},
            warnings=self._warnings,
        )


class FakeAssistant:
    """Replays events; remembers what it was asked and what it was told to forget.

    With `hangs` set it sets `begun` after the first events and never answers.
    """

    def __init__(self, *events: AgentEvent, hangs: bool = False) -> None:
        self.asked: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self.begun = asyncio.Event()
        self.cancelled = False
        self._events = events or answering(ANSWER)
        self._hangs = hangs

    async def ask(self, question: str, *, thread: str, **_: Any) -> AsyncIterator[AgentEvent]:
        self.asked.append((question, thread))
        for event in self._events:
            if self._hangs and event.kind == "answer":
                await self._hang()
            yield event

    async def _hang(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def forget(self, thread: str, *, run_id: str | None = None) -> None:
        self.forgotten.append(thread)

    def resume(self, run_id: str, **_: Any) -> AsyncIterator[AgentEvent]:
        raise AssertionError("no question of the terminal is taken up again")

    async def stop(self, run_id: str) -> bool:
        raise AssertionError("the terminal ends an answer by cancelling it")

    async def remember(self, question: str, answer: Answer, *, thread: str, run_id: str) -> None:
        raise AssertionError("no goal run is remembered")


def event(kind: EventKind, /, **payload: Any) -> AgentEvent:
    """Make an event of a run."""
    return AgentEvent(kind=kind, run_id="run", iteration=0, ts=0.0, payload=payload)


def answering(answer: Answer) -> tuple[AgentEvent, ...]:
    """The events of a run that ends with the answer."""
    return (
        event("step_start", node="retrieval", stage="Searching `send`"),
        event("token", text=answer.text),
        event("answer", answer=answer),
    )


def saying(text: str) -> Answer:
    """An answer with other words."""
    return dataclasses.replace(ANSWER, text=text)


class FakeOpening:
    """Opens an application made of fakes; remembers for which settings and repository."""

    def __init__(
        self,
        index: FakeIndex | None = None,
        assistant: FakeAssistant | None = None,
        goals: GoalRuns | None = None,
    ) -> None:
        self.goals = goals
        self.index = index or FakeIndex()
        self.assistant = assistant or FakeAssistant()
        self.opened: list[tuple[Settings, RepositoryTable]] = []

    @asynccontextmanager
    async def __call__(self, settings: Settings, table: RepositoryTable) -> AsyncGenerator[App]:
        self.opened.append((settings, table))
        yield App(
            settings=settings,
            index=self.index,
            open_assistant=self._open_assistant,
            open_single=self._open_assistant,
            open_goals=self._open_goals,
        )

    @asynccontextmanager
    async def _open_goals(self) -> AsyncGenerator[GoalRuns]:
        assert self.goals is not None
        yield self.goals

    @asynccontextmanager
    async def _open_assistant(self) -> AsyncGenerator[Answerer]:
        yield self.assistant
