"""The surfaces of a process that answers: on its server from the beginning, and with their core once that is open."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext

from bot.app import TeamApp
from bot.conversations.dispatcher import Conversations
from bot.serving.monitoring import JoinServer
from bot.surfaces.api.chat_completions import ChatCompletions
from bot.surfaces.api.repeated_questions import RepeatedQuestions
from bot.surfaces.mcp.mcp_endpoint import McpEndpoint, is_installed
from bot.surfaces.team_surfaces import Late, SurfaceCore
from bot.surfaces.web.web_surface import WebOptions, WebSurface, serve_team_page
from indexer import describe_extra

DRAIN_SECONDS = 5.0  # for which answers may come to their end when the process ends


log = logging.getLogger(__name__)


class TeamSurfaces:
    """The surfaces for programs and people beside the chats."""

    def __init__(self, *, has_api: bool, page: WebOptions | None = None) -> None:
        self._core = Late[SurfaceCore]()
        self._repeated = RepeatedQuestions()
        self._has_api = has_api
        self._page = WebSurface(page) if page is not None else None
        self._mcp: McpEndpoint | None = None

    def make(self) -> Sequence[JoinServer]:
        """Make those that are to be served; return what adds the paths of each to those of the server."""
        joins: list[JoinServer] = []
        if self._has_api:
            from bot.surfaces.api.http_api import HttpApi  # FastAPI takes half a second to import

            self._mcp = self._make_mcp()
            joins = [HttpApi(self._core, self._repeated).join, ChatCompletions(self._core, self._repeated).join]
        return [*joins, *(one.join for one in (self._mcp, self._page) if one is not None)]

    def _make_mcp(self) -> McpEndpoint | None:
        if not is_installed():
            log.warning("/mcp is not served: the extra `mcp` is not installed. %s", describe_extra("mcp"))
            return None
        return McpEndpoint(self._core)

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
        if self._page is None:
            yield
            return
        async with serve_team_page(self._page, core, team, conversations):
            yield
