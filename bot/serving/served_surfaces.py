"""The surfaces of a process that answers: on its server from the beginning, and with their core once that is open."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext

from bot.app import TeamApp
from bot.conversations.dispatcher import Conversations
from bot.serving.http_server import ServedSurface
from bot.surfaces.api.ask_requests import Asking
from bot.surfaces.api.chat_completions import ChatCompletions
from bot.surfaces.api.http_api import HttpApi
from bot.surfaces.api.repeated_questions import RepeatedQuestions
from bot.surfaces.long_requests import KeepOpen, LateCore, LongRequests
from bot.surfaces.mcp.mcp_endpoint import McpEndpoint, is_installed
from bot.surfaces.team_surfaces import SurfaceCore
from bot.surfaces.web.web_surface import WebOptions, WebSurface, serve_team_page
from indexer import describe_extra

MOST_CALLS = 32  # of one person at a time over MCP; an agent makes many side by side
DRAIN_SECONDS = 5.0  # for which answers may come to their end when the process ends


log = logging.getLogger(__name__)


class TeamSurfaces:
    """What is served to programs and people beside the chats."""

    def __init__(self, *, has_api: bool, page: WebOptions | None = None) -> None:
        self._core = LateCore()
        self._repeated = RepeatedQuestions()
        self._has_api = has_api
        self._page = WebSurface(page) if page is not None else None
        self._requests: LongRequests | None = None
        self._mcp: McpEndpoint | None = None

    def make(self, keep_open: KeepOpen) -> Sequence[ServedSurface]:
        """Return those that are to be served."""
        self._requests = requests = LongRequests(keep_open)
        asking = Asking(core=self._core, requests=requests, repeated=self._repeated)
        served: list[ServedSurface | None] = []
        if self._has_api:
            self._mcp = self._make_mcp(keep_open)
            served = [HttpApi(self._core, asking), ChatCompletions(self._core, asking), self._mcp]
        return [surface for surface in (*served, self._page) if surface is not None]

    def _make_mcp(self, keep_open: KeepOpen) -> McpEndpoint | None:
        if not is_installed():
            log.warning("/mcp is not served: the extra `mcp` is not installed. %s", describe_extra("mcp"))
            return None
        return McpEndpoint(self._core, LongRequests(keep_open, most_each=MOST_CALLS))

    @asynccontextmanager
    async def serve(self, core: SurfaceCore) -> AsyncIterator[None]:
        """Answer for as long as the context is open; at its end, what is not finished in time is interrupted."""
        self._core.open(core)
        try:
            async with nullcontext() if self._mcp is None else self._mcp.open(core):
                yield
        finally:
            self._core.close()
            await self._repeated.close(DRAIN_SECONDS)

    @asynccontextmanager
    async def serve_page(self, core: SurfaceCore, team: TeamApp, conversations: Conversations) -> AsyncIterator[None]:
        """Serve the page, where there is one, for as long as the context is open."""
        if self._page is None or self._requests is None:
            yield
            return
        async with serve_team_page(self._page, self._requests, core, team, conversations):
            yield
