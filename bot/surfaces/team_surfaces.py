"""The core of the surfaces of a process that serves a team, over what its chats use already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from starlette.exceptions import HTTPException

from bot.access import AccessPolicy
from bot.app import TeamApp, make_redactor
from bot.settings import Settings
from bot.surfaces.code_lookups import CodeLookups
from bot.surfaces.principals import Tokens
from bot.surfaces.questions import Questions

if TYPE_CHECKING:  # which a process of one person does not need
    from bot.conversations.dispatcher import Conversations
    from bot.surfaces.goal_runs import TeamGoalRuns


T = TypeVar("T")

RETRY_AFTER = "5"  # seconds


class Late(Generic[T]):
    """A core that arrives later: its paths are served from the start, and ask callers to come back."""

    def __init__(self) -> None:
        self._core: T | None = None

    def open(self, core: T) -> None:
        """Serve requests from now on."""
        self._core = core

    def close(self) -> None:
        """Serve nothing more; ask callers to try again."""
        self._core = None

    def get(self) -> T:
        """Return the core; raises an `HTTPException` while there is none."""
        if self._core is None:
            detail = "citebot is starting or shutting down. Try again in a moment."
            raise HTTPException(503, detail, {"Retry-After": RETRY_AFTER})
        return self._core


@dataclass(frozen=True, kw_only=True)
class SurfaceCore:
    """The parts of every surface. `hosts` are the server's names, in addition to loopback."""

    lookups: CodeLookups
    questions: Questions
    tokens: Tokens
    access: AccessPolicy
    runs: TeamGoalRuns | None = None
    hosts: tuple[str, ...] = ()


def make_team_core(settings: Settings, team: TeamApp, conversations: Conversations) -> SurfaceCore:
    """Make the core that shares checks, places and records with the chats of a process."""
    from bot.surfaces.goal_runs import TeamGoalRuns

    deps, library = conversations.deps, team.stock.library
    lookups = CodeLookups(library=library, access=deps.access, mask=make_redactor(settings), counter=deps.counter)
    return SurfaceCore(
        lookups=lookups,
        questions=Questions(deps),
        tokens=Tokens(settings.mcp.tokens),
        access=deps.access,
        runs=TeamGoalRuns(conversations),
        hosts=settings.mcp.hosts,
    )
