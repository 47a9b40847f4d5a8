"""The demo workspace over a fake agent, on a server of its own, and browsers that are signed in to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from bot.access import AccessPolicy, ChannelTable
from bot.adapters.local.endpoint import LocalCore, LocalPages
from bot.adapters.local.rendering import make_web_url
from bot.adapters.local.workspace import PEOPLE, Person
from bot.clock import SystemClock
from bot.conversations.assembly import ChatPolicy
from bot.http.server import make_application, run_http_server
from bot.surfaces.ask_events import CitedPlace
from bot.surfaces.web.cited_code import CitedCode, CodeHighlighter
from bot.surfaces.web.request_guard import LoginLink, WebSessions
from tests.bot.surfaces.web.conftest import CitingAnswerer, SourceCode, Visit, mask
from tests.bot.worlds import Life, LocalWorld
from tests.fakes.parts import HEAD
from tests.waiting import LIMIT_SECONDS

URL = f"{make_web_url('demo')}/blob/{HEAD}/src/session.py#L10-L24"


class Plain:
    """A worker that highlights nothing."""

    def exchange(self, body: bytes) -> bytes | None:
        return None


class ServedWorkspace(LocalWorld):
    """The workspace with its page; time passes as it does."""

    people = PEOPLE

    def __init__(self, path: Path) -> None:
        policy = ChatPolicy(
            hosts=("code.localhost",), access=AccessPolicy(reindex=("local:ann",)), mask=mask,
            manners={"help": ChannelTable(manners="every question").manners},
        )  # fmt: skip
        self.citing = CitingAnswerer(gate=asyncio.Event())
        self.citing.address = URL
        super().__init__(path, policy=policy, agent=self.citing)
        self.clock = SystemClock()  # type: ignore[assignment] # nobody turns it
        self.repositories.indexes["demo"].code = SourceCode()
        self.address = ""
        self.link = LoginLink()
        self.pushed: list[tuple[str, CitedPlace | None]] = []
        self._visits: list[aiohttp.ClientSession] = []
        assert self.citing.gate is not None
        self.citing.gate.set()

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(0.01)

    async def _listen(self, life: Life, stack: AsyncExitStack) -> None:
        highlighter = CodeHighlighter(Plain().exchange)
        pages, application = LocalPages(self.link, WebSessions(self.clock), highlighter), make_application()
        pages.join(application.router)
        self.address = await stack.enter_async_context(run_http_server(application, host="127.0.0.1", port=0))
        pages.open(
            LocalCore(
                workspace=self.workspace,
                listener=self.listener,
                code=CitedCode(self.repositories, mask),
                access=self.policy.access,
                push=self._push,
                repository="demo",
            )
        )
        await super()._listen(life, stack)

    async def _push(self, person: Person, place: CitedPlace | None) -> str:
        self.pushed.append((person.id, place))
        return ""

    async def sign_in(self) -> Visit:
        """Open a browser, and sign in, as Ann."""
        jar, timeout = aiohttp.CookieJar(unsafe=True), aiohttp.ClientTimeout(total=LIMIT_SECONDS)
        session = aiohttp.ClientSession(cookie_jar=jar, timeout=timeout)
        self._visits.append(session)
        visit = Visit(self, session)
        status, _ = await visit.get(f"/login?t={self.link.token}")
        assert status == 200
        return visit

    async def close(self) -> None:
        """Close the browsers."""
        for session in self._visits:
            await session.close()


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[ServedWorkspace]:
    world = ServedWorkspace(tmp_path / "inbox.sqlite")
    async with world.running():
        try:
            yield world
        finally:
            await world.close()
