"""The page of recent runs: one's own, or everybody's for admins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from bot.storage.turn_records import KeptTurn
from bot.surfaces.principals import Principal
from bot.surfaces.questions import Surface
from bot.surfaces.web.request_guard import WebSession
from bot.surfaces.web.web_core import WebCore, WebPages, send_html

DAYS = 7
MAX_READ = 1_000  # turns that the figures are made of
MAX_SHOWN = 100
_DAY = 86_400.0
SURFACES = get_args(Surface)  # where conversations are not on the platform of the person


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """A run for the page; `found` is None if unknown."""

    age: float
    repository: str
    commit: str
    person: str
    route: str
    model: str
    seconds: float
    tokens: int
    found: bool | None
    opinion: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The totals of many runs."""

    answers: int
    not_found: float | None
    good: int
    bad: int
    median: float | None


class RunPages(WebPages):
    """The page of answered questions."""

    def join(self, router: Router) -> None:
        """Add the path to the server's."""
        router.routes.append(Route("/runs", self._guard.require_session(self.show)))

    async def show(self, _: Request, session: WebSession) -> Response:
        """Show the page."""
        core = self._core.get()
        is_admin = core.access.is_admin(session.principal.write())
        runs = await list_runs(core, session.principal, is_admin=is_admin)
        # Other people's runs would reveal that the repository exists.
        errors = core.tally.share_of_errors if is_admin else core.turns.measure_errors(session.principal)
        page = self._files.render(
            "runs.html", title="Runs", here="Runs", session=session, is_admin=is_admin, days=DAYS,
            runs=runs[:MAX_SHOWN], summary=summarize_runs(runs), errors=errors,
        )  # fmt: skip
        return send_html(page)


async def list_runs(core: WebCore, principal: Principal, *, is_admin: bool) -> Sequence[ShownRun]:
    """List the runs that a person may see, newest first, without those about forbidden repositories."""
    now = core.clock.now()
    since = now - DAYS * _DAY
    visible = set(core.list_visible(principal))
    opinions = await _read_opinions(core, since, principal, is_admin=is_admin)
    kept = await core.records.recent(since=since, most=MAX_READ)
    return [
        ShownRun(
            age=max(0.0, now - turn.at),
            repository=core.mask(", ".join(turn.record.names)),
            commit=turn.record.commit,
            person=turn.record.person,
            route=turn.record.route,
            model=turn.record.model or "",
            seconds=turn.record.seconds,
            tokens=turn.record.input_tokens + turn.record.output_tokens,
            found=turn.record.found,
            opinion=opinions.get(turn.run_id, ""),
        )
        for turn in kept
        if visible.issuperset(turn.record.names) and (is_admin or _is_own(turn, principal))
    ]


def summarize_runs(runs: Sequence[ShownRun]) -> RunSummary:
    """Count the results of runs."""
    noted = [run.found for run in runs if run.found is not None]
    return RunSummary(
        answers=len(runs),
        not_found=noted.count(False) / len(noted) if noted else None,
        good=sum(run.opinion == "good" for run in runs),
        bad=sum(run.opinion == "bad" for run in runs),
        median=median(run.seconds for run in runs) if runs else None,
    )


async def _read_opinions(core: WebCore, since: float, principal: Principal, *, is_admin: bool) -> Mapping[str, str]:
    """Return the ratings of each run: the last one that the person may see."""
    entries = await core.records.feedback(since=since)
    return {each.run_id: each.opinion for each in entries if is_admin or each.person == principal.person}


def _is_own(turn: KeptTurn, principal: Principal) -> bool:
    """Whether a turn is the person's: ids are unique only on one platform."""
    place, within, *_ = [*turn.conversation.split(":"), ""]
    platform = within if place in SURFACES else place
    is_named = turn.record.person == principal.key  # as of goal runs outside chats
    return is_named or (turn.record.person == principal.person and platform == principal.platform)
