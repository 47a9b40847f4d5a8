"""The page as a surface: its paths, its sign-in, and its core while citebot answers."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router, request_response

from bot.app import TeamApp
from bot.clock import Clock, RareWarnings, SystemClock
from bot.conversations.dispatcher import Conversations
from bot.surfaces.principals import Principal, Tokens, make_local_principal
from bot.surfaces.team_surfaces import Late, SurfaceCore
from bot.surfaces.web.ask_pages import AskPages
from bot.surfaces.web.cited_code import MEMORY, SECONDS, WORKER, CodeHighlighter
from bot.surfaces.web.goal_pages import GOALS, GoalPages
from bot.surfaces.web.page_files import PageFiles
from bot.surfaces.web.repository_pages import RepositoryPages
from bot.surfaces.web.request_guard import LOGIN, SHARED, LoginLink, RequestGuard, WebAddress, WebSession, WebSessions
from bot.surfaces.web.run_pages import RunPages
from bot.surfaces.web.web_core import RunTally, WebCore, make_web_core, send_html
from indexer import ConfinedWorker

PAGES = (("/", "Ask"), ("/repositories", "Repositories"), ("/runs", "Runs"))
WRONG_TOKEN = "Unknown token. Ask your citebot administrator for a new one."  # noqa: S105 - a sentence
USED_LINK = "This link is wrong or was already used."

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WebOptions:
    """Access to the page: by token, or, with a `link`, for the person at this machine."""

    address: WebAddress = field(default_factory=WebAddress)
    tokens: Tokens = field(default_factory=lambda: Tokens(()))
    link: LoginLink | None = None
    clock: Clock = field(default_factory=SystemClock)


def make_web_options(url: str, hosts: Sequence[str], tokens: Tokens) -> WebOptions:
    """Return the options of a team's page, with its public address and names; token owners may sign in."""
    public = urlsplit(url)
    names = {host.lower() for host in (*hosts, public.netloc) if host}
    return WebOptions(address=WebAddress(hosts=frozenset(names), is_secure=public.scheme == "https"), tokens=tokens)


class WebSurface:
    """The page."""

    def __init__(self, options: WebOptions) -> None:
        self._options = options
        self._core = Late[WebCore]()
        self._files = PageFiles()
        self._sessions = WebSessions(options.clock)
        self._guard = RequestGuard(options.address, self._sessions, self._refuse)
        self._worker = ConfinedWorker(WORKER, seconds=SECONDS, memory=MEMORY)
        highlighter = CodeHighlighter(self._worker.exchange)  # one for all, as it waits for its worker
        shared = (self._core, self._files, self._guard, highlighter)
        self._pages = (AskPages(*shared), RepositoryPages(*shared), RunPages(*shared), GoalPages(*shared))
        self._warnings = RareWarnings(log)

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        self._files.join(router)
        for pages in self._pages:
            pages.join(router)
        guard = self._guard
        router.routes += [
            Route(LOGIN, guard.open(self.show_login)),
            Route(LOGIN, guard.open(self.log_in), methods=["POST"]),
            Route("/logout", guard.require_form(self.log_out), methods=["POST"]),
        ]
        router.default = request_response(guard.open(self.show_missing))

    @asynccontextmanager
    async def serve(self, core: WebCore) -> AsyncIterator[None]:
        """Answer for as long as the context is open; then interrupt questions in progress."""
        async with AsyncExitStack() as stack:
            stack.callback(self._worker.close)
            await stack.enter_async_context(core.indexing.open())
            await stack.enter_async_context(core.turns.open())
            has_goals = core.runs is not None and core.runs.is_on
            self._files.define("pages", [*PAGES, *([(GOALS, "Goal runs")] if has_goals else [])])
            self._core.open(core)
            stack.callback(self._core.close)
            yield

    async def show_login(self, request: Request) -> Response:
        """Let the printed address sign in once, and print another one; show others how to sign in."""
        given, link = request.query_params.get("t"), self._options.link
        if given is None:
            return self._show_login(target=read_target(request.query_params.get("next", "")))
        if link is None or not link.take(given):
            if self._guard.find_session(request) is not None:  # who opens it again is signed in
                return RedirectResponse("/", 303)
            self._warnings.warn("somebody tried to sign in to the page with a wrong address")
            return self._show_login(USED_LINK)
        link.announce()
        return self._sign_in(request, make_local_principal())

    async def log_in(self, request: Request) -> Response:
        """Sign in the owner of a token."""
        fields = await self._guard.read_form(request)
        principal = self._options.tokens.find(fields.get("token", "").strip())
        target = read_target(fields.get("next", ""))
        if principal is None:
            self._warnings.warn("somebody tried to sign in to the page with a wrong token")
            return self._show_login(WRONG_TOKEN, target)
        return self._sign_in(request, principal, target)

    async def log_out(self, request: Request, _: WebSession, __: Mapping[str, str]) -> Response:
        """End a session."""
        response = RedirectResponse(LOGIN, 303)
        self._guard.sign_out(request, response)
        return response

    async def show_missing(self, _: Request) -> Response:
        """Refuse an unknown address."""
        raise HTTPException(404, "There is no page at this address.")

    def _sign_in(self, request: Request, principal: Principal, target: str = "/") -> Response:
        response = RedirectResponse(target, 303)
        self._guard.sign_in(request, response, self._sessions.open(principal))
        return response

    def _show_login(self, problem: str = "", target: str = "/") -> Response:
        page = self._files.render(
            "login.html", title="Sign in", here="", session=None, problem=problem,
            takes_tokens=self._options.link is None, command="citebot web", target=target,
        )  # fmt: skip
        return send_html(page, status=403 if problem else 200)

    def _refuse(self, request: Request, status: int, text: str) -> Response:
        page = self._files.render(
            "message.html", title="Not found" if status == 404 else "Something went wrong", here="", text=text,
            session=self._guard.find_session(request), has_link=status != 421,
        )  # fmt: skip
        return send_html(page, status=status)


def read_target(address: str) -> str:
    """Return the target after signing in: the shared answer that was opened, else the start."""
    return address if re.fullmatch(rf"{SHARED}[\w-]{{1,64}}", address, re.ASCII) else "/"


@asynccontextmanager
async def serve_team_page(
    surface: WebSurface, core: SurfaceCore, team: TeamApp, conversations: Conversations
) -> AsyncIterator[None]:
    """Serve a page over the process's surfaces and chats."""
    tally = RunTally()
    web_core = make_web_core(core, team, conversations, tally)
    async with team.events.follow(tally.follow), surface.serve(web_core):
        yield
