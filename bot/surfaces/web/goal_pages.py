"""The pages of goal runs: the list with the form for a new one, and a run with its proposal, progress and verdict."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router

from bot.errors import NotAllowed, UnknownGoalRun
from bot.surfaces.goal_runs import MAX_TASK_CHARACTERS, MAX_WORDS, GoalRun, TeamGoalRuns
from bot.surfaces.web.request_guard import WebSession
from bot.surfaces.web.web_core import WebPages, send_html

GOALS = "/goals"
# The meaning of the words for each kind of goal; a claim needs none.
WORDS = {"pytest": "select", "command": "argv", "claim": "", "types": "paths", "lint": "paths"}
NOTHING_WRITTEN = dict.fromkeys(("goal", "repository", "task", "words"), "")
OFF = "Goal runs are off here."


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
