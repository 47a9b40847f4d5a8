"""The page over a fake agent, on a server of its own, and browsers that are signed in to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest

from agent.events import AsyncEventBus
from agent.ports import Answer
from bot.access import AccessPolicy, AccessRule
from bot.clock import SystemClock
from bot.http.connections import Connections
from bot.http.server import make_application, run_http_server
from bot.questions.answer_run import AnswerQueue, QuestionDeps
from bot.settings import TokenTable
from bot.storage.answer_records import SharedAnswerStore
from bot.storage.database import open_database
from bot.storage.living_answers import LivingAnswerStore
from bot.storage.turn_records import TurnRecordStore
from bot.surfaces.principals import Tokens, hash_token
from bot.surfaces.questions import Questions
from bot.surfaces.web.cited_code import CitedCode
from bot.surfaces.web.live_turns import LiveTurns
from bot.surfaces.web.request_guard import LoginLink, WebAddress
from bot.surfaces.web.web_core import IndexRequests, RunTally, SharedTurns, WebCore
from bot.surfaces.web.web_surface import WebOptions, WebSurface
from indexer.types import Location, Passage
from tests.bot.surfaces.api.conftest import StraightRouter
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.parts import ANSWER, CITATION, FakeCode
from tests.waiting import LIMIT_SECONDS

ANN, BOB = "citebot_of-ann", "citebot_of-bob"
URL = "https://git.example/demo/src/session.py#L10-L24"
SOURCE = "\n".join(f"def line_{number}(): ..." for number in range(1, 60))


def mask(text: str) -> str:
    """Take the one secret out that there is."""
    return text.replace("hunter2", "[REDACTED]")


class CitingAnswerer(FakeAnswerer):
    """Answers with `text`, which cites one place."""

    text = "Events are sent by `Session.send` [1]."
    path = CITATION.path
    address = URL  # of the lines

    def _answer(self, question: str, *, stopped: bool) -> Answer:
        cited = replace(CITATION, url=self.address, path=self.path)
        answer = replace(ANSWER, text=self.text, citations=(cited,), route="fast_path")
        return super()._answer(question, stopped=stopped) if stopped else answer


class SourceCode(FakeCode):
    """Every file holds the same source."""

    source = SOURCE

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        lines = self.source.split("\n")
        last = min(end_line or len(lines), len(lines))
        location = Location(path=path, start_line=start_line, end_line=last)
        return Passage(location=location, text="\n".join(lines[start_line - 1 : last]), language="python")


class Served(Protocol):
    """What is served at an address."""

    @property
    def address(self) -> str: ...


class Linked(Served, Protocol):
    """What a link signs in to."""

    @property
    def link(self) -> LoginLink | None: ...


@dataclass
class Visit:
    """What a browser has: cookies, and the token of the last page that it saw."""

    site: Served
    session: aiohttp.ClientSession
    csrf: str = ""

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        """Open a page, or a part of one."""
        async with self.session.get(self.site.address + path, **options) as answer:
            return answer.status, self._read(await answer.text())

    async def post(
        self, path: str, fields: Mapping[str, str], *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> tuple[int, str]:
        """Send a form as a page of ours does."""
        sent = {"Origin": self.site.address, **(headers or {})}
        form = {"csrf": self.csrf, **fields}
        async with self.session.post(self.site.address + path, data=form, headers=sent, **options) as answer:
            return answer.status, self._read(await answer.text())

    def _read(self, page: str) -> str:
        if found := re.search(r'name="csrf" value="([^"]+)"', page):
            self.csrf = found[1]
        return page

    async def ask(self, question: str, **fields: str) -> str:
        """Ask, and return the address of the turn."""
        if not self.csrf:
            await self.get("/")
        status, text = await self.post("/ask", {"question": question, **fields}, headers={"HX-Request": "true"})
        assert status == 200, text
        found = re.search(r'id="turn-([^"]+)"', text)
        assert found, text
        return f"/turns/{found[1]}"

    async def follow(self, turn: str) -> str:
        """Follow a turn to its end; return all that was sent."""
        _, text = await self.get(f"{turn}/events", headers={"Accept": "text/event-stream"})
        return text


@dataclass
class Site:
    """A server with the page. Ann and Bob have tokens, or there is a link; `secret` is for nobody."""

    answerer: CitingAnswerer
    library: FakeRepositories
    code: SourceCode
    living: LivingAnswerStore
    core: WebCore
    surface: WebSurface
    link: LoginLink | None
    connections: Connections
    visits: list[aiohttp.ClientSession] = field(default_factory=list)
    address: str = ""

    def visit(self) -> Visit:
        """Open a browser."""
        session = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=aiohttp.ClientTimeout(total=LIMIT_SECONDS)
        )
        self.visits.append(session)
        return Visit(self, session)

    async def sign_in(self, token: str = "") -> Visit:
        """Open a browser, and sign in."""
        visit = self.visit()
        if self.link is not None:
            status, _ = await visit.get(f"/login?t={self.link.token}")
        else:
            status, _ = await visit.post("/login", {"token": token or ANN})
        assert status == 200
        return visit


@asynccontextmanager
async def open_site(
    folder: Path, *, by_link: bool = True, admins: Sequence[str] = (), hosts: Sequence[str] = (), secure: bool = False
) -> AsyncIterator[Site]:
    answerer, library, code = CitingAnswerer(gate=asyncio.Event()), FakeRepositories("demo", "secret"), SourceCode()
    assert answerer.gate is not None
    answerer.gate.set()
    library.indexes["demo"].code = code
    access = AccessPolicy(
        rules=(AccessRule(repositories=("secret",), people=("slack:NOBODY",)),), admins=tuple(admins),
        reindex=("local", "ANN"),
    )  # fmt: skip
    link = LoginLink() if by_link else None
    entries = [
        TokenTable(person="slack:ANN", sha256=hash_token(ANN)),
        TokenTable(person="slack:BOB", sha256=hash_token(BOB)),
    ]
    address = WebAddress(hosts=frozenset(hosts), is_secure=secure)
    surface = WebSurface(WebOptions(link=link, tokens=Tokens(() if by_link else entries), address=address))
    connections, server = Connections(), make_application()
    surface.join(server.router)
    async with (
        open_database(folder / "chat.sqlite") as database,
        run_http_server(server, host="127.0.0.1", port=0, connections=connections) as listening,
    ):
        records, tally = TurnRecordStore(database, SystemClock()), RunTally()
        living = LivingAnswerStore(database, SystemClock())
        questions = Questions(
            QuestionDeps(
                open_agent=lambda: nullcontext(answerer), repositories=library, chooser=StraightRouter(),
                queue=AnswerQueue(8), access=access, hosts=("git.example",), mask=mask, records=records,
                living=living,
            )
        )  # fmt: skip
        turns = LiveTurns(CitedCode(library, mask), mask, SystemClock())
        core = WebCore(
            questions=questions, turns=turns, repositories=library,
            shared=SharedTurns(SharedAnswerStore(database, SystemClock()), turns), indexing=IndexRequests(library),
            records=records, tally=tally, access=access, mask=mask,
        )  # fmt: skip
        site = Site(answerer, library, code, living, core, surface, link, connections, address=listening)
        async with AsyncEventBus().follow(tally.follow), surface.serve(core):
            try:
                yield site
            finally:
                for session in site.visits:
                    await session.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
async def team_site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, by_link=False) as opened:
        yield opened
