"""The core of the page: askers, shared answers, requests to index, and the panels."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic import ValidationError
from starlette.responses import HTMLResponse, Response

from agent import Subscription
from bot.access import AccessPolicy
from bot.app import TeamApp
from bot.clock import Clock, SystemClock
from bot.conversations.dispatcher import Conversations
from bot.ports import Repositories
from bot.questions.descriptions import describe_progress, describe_refresh
from bot.storage.answer_records import SharedAnswerStore
from bot.storage.turn_records import TurnRecordStore
from bot.surfaces.ask_events import Answered
from bot.surfaces.goal_runs import TeamGoalRuns
from bot.surfaces.principals import Principal
from bot.surfaces.questions import Questions
from bot.surfaces.team_surfaces import Late, SurfaceCore
from bot.surfaces.web.answer_markup import AnswerMarkup
from bot.surfaces.web.cited_code import CitedCode, CodeHighlighter
from bot.surfaces.web.live_turns import LiveTurn, LiveTurns
from bot.surfaces.web.page_files import PageFiles
from bot.surfaces.web.request_guard import RequestGuard
from bot.surfaces.web.run_course import RunCourse
from indexer import IndexerError, Progress, WatchStatus

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RequestedIndexing:
    """Indexing requested on the page; `outcome` is its result."""

    progress: str = "Starting"
    share: float | None = None
    outcome: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return bool(self.outcome)


class IndexRequests:
    """Indexes repositories on request, one at a time each, whether or not anyone is looking."""

    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories
        self._requested: dict[str, RequestedIndexing] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the core; at the end nothing is followed any more, and the library ends work in progress."""
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def find(self, name: str) -> RequestedIndexing | None:
        """Return the last request."""
        return self._requested.get(name)

    def begin(self, name: str) -> None:
        """Start indexing a repository, unless it is in progress."""
        known = self._requested.get(name)
        if known is not None and not known.is_over:
            return
        requested = self._requested[name] = RequestedIndexing()
        task = asyncio.create_task(self._index(name, requested))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _index(self, name: str, requested: RequestedIndexing) -> None:
        def show(progress: Progress) -> None:
            requested.progress = describe_progress(name, progress)
            requested.share = min(1.0, progress.done / progress.total) if progress.total > 0 else None

        outcome = "This failed; see the log. Try again."
        try:
            report = await self._repositories.refresh(name, progress=show)
            outcome = describe_refresh(report, name).replace("`", "")
        except IndexerError as error:
            log.warning("%s could not be indexed for the page: %s", name, error)
            outcome = str(error)
        finally:
            requested.outcome = outcome


class SharedTurns:
    """Shares answers of the page, and finds shared ones."""

    def __init__(self, store: SharedAnswerStore, turns: LiveTurns) -> None:
        self._store = store
        self._turns = turns

    async def share(self, turn: LiveTurn, answer: Answered) -> None:
        """Share the question and the answer of a turn, without the rest of its conversation."""
        kept = answer.model_copy(update={"conversation": ""})
        await self._store.share(turn.id, turn.owner, turn.question, kept.model_dump_json())
        turn.is_shared = True

    async def withdraw(self, turn: LiveTurn) -> None:
        """Remove the link of a turn."""
        await self._store.withdraw(turn.id, turn.owner)
        turn.is_shared = False

    async def find(self, turn: str) -> LiveTurn | None:
        """Find a shared turn: the present one, or a copy without its trace."""
        kept = await self._store.find(turn)
        if kept is None:
            return None
        if live := self._turns.find_shared(turn):
            return live
        try:
            answer = Answered.model_validate_json(kept.answer)
        except ValidationError:
            log.warning("a shared answer was kept by another version of citebot, and cannot be read")
            return None
        return LiveTurn(
            id=kept.id, conversation="", owner=kept.owner, question=kept.question, asked_at=kept.at, text=answer.text,
            course=RunCourse(str), answer=answer, is_shared=True,
            excerpts={place.mark: await self._turns.cited.read(place) for place in answer.citations},
        )  # fmt: skip


class RunTally:
    """The numbers of answered and failed runs of this process."""

    def __init__(self) -> None:
        self._answers = self._errors = 0

    @property
    def share_of_errors(self) -> float | None:
        """The share of failed runs; None before there was one."""
        return self._errors / self._answers if self._answers else None

    async def follow(self, events: Subscription) -> None:
        """Count events until they end."""
        async for event in events:
            if event.kind == "answer":
                self._answers += 1
                self._errors += event.payload["answer"].route == "failed"


@dataclass(frozen=True, kw_only=True)
class WebCore:
    """The agent and the other parts of the page. `mask` takes secrets out of text."""

    questions: Questions
    turns: LiveTurns
    shared: SharedTurns
    repositories: Repositories
    indexing: IndexRequests
    records: TurnRecordStore
    tally: RunTally
    runs: TeamGoalRuns | None = None
    access: AccessPolicy = field(default_factory=AccessPolicy)
    read_watched: Callable[[], Mapping[str, WatchStatus]] = dict
    mask: Callable[[str], str] = str
    clock: Clock = field(default_factory=SystemClock)

    def list_visible(self, principal: Principal) -> Sequence[str]:
        """Name the repositories that a person may ask about."""
        return self.access.list_visible(principal.write(), self.repositories.list_names())


class WebPages:
    """Some pages, over what all of them share: `join` of each adds their paths."""

    def __init__(
        self, core: Late[WebCore], files: PageFiles, guard: RequestGuard, highlighter: CodeHighlighter
    ) -> None:
        self._core = core
        self._files = files
        self._guard = guard
        self._highlighter = highlighter
        self._markup = AnswerMarkup()


def make_web_core(core: SurfaceCore, team: TeamApp, conversations: Conversations, tally: RunTally) -> WebCore:
    """Make the core of the page from the process's surfaces and chats."""
    deps = conversations.deps
    turns = LiveTurns(CitedCode(deps.repositories, deps.mask, team.stock.library.refs), deps.mask, deps.clock)
    return WebCore(
        questions=core.questions,
        turns=turns,
        shared=SharedTurns(deps.shared, turns),
        repositories=deps.repositories,
        indexing=IndexRequests(deps.repositories),
        records=deps.records,
        tally=tally,
        runs=core.runs,
        access=core.access,
        read_watched=lambda: {each.repository: each for each in team.stock.watcher.status()},
        mask=deps.mask,
        clock=deps.clock,
    )


def send_html(markup: str, headers: Mapping[str, str] | None = None, *, status: int = 200) -> Response:
    """Answer with a page, or a part of one."""
    return HTMLResponse(markup, status, headers)
