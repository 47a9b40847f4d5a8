"""The pages of recent runs, one's own or for admins everybody's, and of a goal run: proposal, progress, verdict."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router

from bot.errors import NotAllowed, UnknownGoalRun
from bot.storage.turn_records import KeptTurn
from bot.surfaces.goal_runs import MAX_TASK_CHARACTERS, MAX_WORDS, GoalRun, TeamGoalRuns
from bot.surfaces.principals import Principal
from bot.surfaces.questions import Surface
from bot.surfaces.web.request_guard import WebSession
from bot.surfaces.web.web_core import WebCore, WebPages, send_html

DAYS = 7
MAX_READ = 1_000  # turns that the figures are made of
MAX_SHOWN = 100
_DAY = 86_400.0
GOALS = "/goals"
# The meaning of the words for each kind of goal; a claim needs none.
WORDS = {"pytest": "select", "command": "argv", "claim": "", "types": "paths", "lint": "paths"}
NOTHING_WRITTEN = dict.fromkeys(("goal", "repository", "task", "words"), "")
OFF = "Goal runs are off here."
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


class GoalPages(WebPages):
    """The pages of goal runs."""

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        guard, one = self._guard, f"{GOALS}/{{run}}"
        router.routes += [
            Route(GOALS, guard.require_session(self.show_list)),
            Route(GOALS, guard.require_form(self.propose), methods=["POST"]),
            Route(one, guard.require_session(self.show)),
            Route(f"{one}/part", guard.require_session(self.show_part)),
            Route(f"{one}/decide", guard.require_form(self.decide), methods=["POST"]),
        ]

    async def show_list(self, _: Request, session: WebSession) -> Response:
        """Show the runs that a person may see, and the form for a new one."""
        return await self._send_list(session)

    async def propose(self, _: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Propose a run, and show it."""
        goal, task = fields.get("goal", ""), fields.get("task", "").strip()
        try:
            words = _read_words(task, fields.get("words", ""))
            arguments = {name: words} if words and (name := WORDS.get(goal, "")) else {}
            run = await self._get_runs().begin(
                session.principal, goal, task, arguments, repository=fields.get("repository") or None
            )
        except (NotAllowed, ValueError) as error:
            return await self._send_list(session, str(error), fields)
        return RedirectResponse(f"{GOALS}/{run}", 303)

    async def show(self, request: Request, session: WebSession) -> Response:
        """Show a run."""
        return await self._send_run(request, session)

    async def show_part(self, request: Request, session: WebSession) -> Response:
        """Show the progress of a run for an open page."""
        return await self._send_run(request, session, is_part=True)

    async def decide(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Approve the shown proposal, or abort it."""
        name, decision = request.path_params["run"], fields.get("decision")
        try:
            await self._get_runs().decide(
                session.principal, name, "approve" if decision == "approve" else "abort", fields.get("proposal", "")
            )
        except UnknownGoalRun as error:
            raise HTTPException(404, str(error)) from error
        except NotAllowed as error:
            return await self._send_run(request, session, str(error))
        return RedirectResponse(f"{GOALS}/{name}", 303)

    def _get_runs(self) -> TeamGoalRuns:
        runs = self._core.get().runs
        if runs is None or not runs.is_on:
            raise HTTPException(404, OFF)
        return runs

    async def _send_list(
        self, session: WebSession, problem: str = "", written: Mapping[str, str] | None = None
    ) -> Response:
        page = self._files.render(
            "goals.html", title="Goal runs", here="Goal runs", session=session, kinds=[*WORDS], problem=problem,
            runs=await self._get_runs().list_visible(session.principal), written={**NOTHING_WRITTEN, **(written or {})},
            repositories=self._core.get().list_visible(session.principal),
        )  # fmt: skip
        return send_html(page, status=422 if problem else 200)

    async def _send_run(
        self, request: Request, session: WebSession, problem: str = "", *, is_part: bool = False
    ) -> Response:
        try:
            run: GoalRun = await self._get_runs().find(session.principal, request.path_params["run"])
        except UnknownGoalRun as error:
            raise HTTPException(404, str(error)) from error
        code = await self._highlighter.highlight_fences(self._markup, run.text)
        text = await asyncio.to_thread(self._markup.write, run.text, None, code)
        if is_part:
            return send_html(self._files.call("goal_run.html", "show_run", run, text, session))
        page = self._files.render(
            "goal.html", title="Goal run", here="Goal runs", session=session, run=run, text=text, problem=problem
        )
        return send_html(page, status=409 if problem else 200)


def _read_words(task: str, written: str) -> list[str]:
    """Split a task into words; raises `ValueError` if the task or a word is too long."""
    words = shlex.split(written)
    if not 0 < len(task) <= MAX_TASK_CHARACTERS or len(words) > MAX_WORDS:
        limit = f"{MAX_TASK_CHARACTERS:,} characters, and at most {MAX_WORDS} words beside it"
        raise ValueError(f"Say what you want in at most {limit}.")
    return words
