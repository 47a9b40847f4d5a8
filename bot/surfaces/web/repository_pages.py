"""The repositories that a person may ask about: their freshness, and requested indexing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router

from bot.errors import NotAllowed
from bot.repositories.status import read_state
from bot.surfaces.principals import Principal
from bot.surfaces.web.request_guard import WebSession
from bot.surfaces.web.web_core import WebCore, WebPages, send_html


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRepository:
    """A repository for the page; unknown values are None."""

    name: str
    state: str
    sentence: str
    commit: str | None
    branch: str | None
    age: float | None
    behind: int | None
    files: int
    symbols: int
    may_index: bool
    is_indexing: bool
    progress: str = ""
    share: float | None = None
    outcome: str = ""


class RepositoryPages(WebPages):
    """The page of the repositories."""

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        guard = self._guard
        router.routes += [
            Route("/repositories", guard.require_session(self.show)),
            Route("/repositories/list", guard.require_session(self.show_list)),
            Route("/repositories/reindex", guard.require_form(self.reindex), methods=["POST"]),
        ]

    async def show(self, _: Request, session: WebSession) -> Response:
        """Show the page."""
        return await self._send_page(session)

    async def show_list(self, _: Request, session: WebSession) -> Response:
        """Show the present state for an open page."""
        return await self._send_list(session)

    async def reindex(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Index a repository for a person with that right; treat an inaccessible one as missing."""
        core, name, problem = self._core.get(), fields.get("repository", ""), ""
        if name not in core.list_visible(session.principal):
            problem = "That repository does not exist, or you have no access to it."
        else:
            try:
                core.access.check_reindex(session.principal.write(), name)
                core.indexing.begin(name)
            except NotAllowed as error:
                problem = str(error)
        if "HX-Request" in request.headers:
            return await self._send_list(session, problem)
        if problem:
            return await self._send_page(session, problem)
        return RedirectResponse("/repositories", 303)

    async def _send_page(self, session: WebSession, problem: str = "") -> Response:
        page = self._files.render(
            "repositories.html", title="Repositories", here="Repositories", session=session,
            repositories=await self._list(session.principal), problem=problem,
        )  # fmt: skip
        return send_html(page, status=422 if problem else 200)

    async def _send_list(self, session: WebSession, problem: str = "") -> Response:
        repositories = await self._list(session.principal)
        return send_html(self._files.call("repository_list.html", "show_list", repositories, session, problem))

    async def _list(self, principal: Principal) -> Sequence[ShownRepository]:
        return await describe_repositories(self._core.get(), principal)


async def describe_repositories(core: WebCore, principal: Principal) -> Sequence[ShownRepository]:
    """Describe the repositories that a person may ask about."""
    return [await describe_repository(core, principal, name) for name in core.list_visible(principal)]


async def describe_repository(core: WebCore, principal: Principal, name: str) -> ShownRepository:
    """Describe a repository to a person who may ask about it."""
    state = await read_state(name, lambda: core.repositories.status(name), core.read_watched())
    requested, status = core.indexing.find(name), state.status
    try:
        core.access.check_reindex(principal.write(), name)
        may_index = True
    except NotAllowed:
        may_index = False
    is_indexing = requested is not None and not requested.is_over
    return ShownRepository(
        name=name,
        state="indexing" if is_indexing else state.state,
        sentence=core.mask(state.sentence),
        commit=status.commit if status else None,
        branch=status.branch if status else None,
        age=max(0.0, core.clock.now() - state.index_time) if state.index_time is not None else None,
        behind=state.commits_behind,
        files=status.files if status else 0,
        symbols=status.symbols if status else 0,
        may_index=may_index,
        is_indexing=is_indexing,
        progress=requested.progress if requested else "",
        share=requested.share if requested else None,
        outcome=core.mask(requested.outcome) if requested else "",
    )
