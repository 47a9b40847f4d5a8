"""The page's core: the answerer, and the page's other contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.responses import HTMLResponse, Response

from agent import Subscription
from bot.access import AccessPolicy
from bot.app import TeamApp
from bot.clock import Clock, SystemClock
from bot.conversations.dispatcher import Conversations
from bot.ports import Repositories
from bot.storage.turn_records import TurnRecordStore
from bot.surfaces.goal_runs import TeamGoalRuns
from bot.surfaces.principals import Principal
from bot.surfaces.questions import Questions
from bot.surfaces.team_surfaces import SurfaceCore
from bot.surfaces.web.cited_code import CitedCode
from bot.surfaces.web.index_requests import IndexRequests
from bot.surfaces.web.live_turns import LiveTurns
from bot.surfaces.web.shared_turns import SharedTurns
from indexer import WatchStatus


class RunTally:
    """The numbers of answered and failed runs of this process."""

    def __init__(self) -> None:
        self._answers = self._errors = 0

    @property
    def share_of_errors(self) -> float | None:
        """The share of failed runs; None before there was one."""
        return self._errors / self._answers if self._answers else None

    async def follow(self, events: Subscription) -> None:
        """Count for as long as events come."""
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


def make_web_core(core: SurfaceCore, team: TeamApp, conversations: Conversations, tally: RunTally) -> WebCore:
    """Make the core of the page from what the surfaces and the chats of a process share."""
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
