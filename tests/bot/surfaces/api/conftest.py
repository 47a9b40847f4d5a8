"""The HTTP API over a fake agent, on a server of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest

from agent.ports import Answer, CodeSearch
from bot.access import AccessPolicy, AccessRule
from bot.http.connections import Connections
from bot.http.server import make_application, run_http_server
from bot.messages import IncomingMessage
from bot.questions.answer_run import AnswerQueue, QuestionDeps
from bot.repositories.choice_store import RepositoryChoice
from bot.repositories.ref_chooser import RefChooser
from bot.serving.service import TeamSurfaces
from bot.settings import TokenTable
from bot.storage.rate_limits import QuestionCounter
from bot.surfaces.code_lookups import CodeLookups
from bot.surfaces.principals import Tokens, hash_token
from bot.surfaces.questions import Questions
from bot.surfaces.team_surfaces import SurfaceCore
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.observer import FakeObserver
from tests.fakes.parts import ANSWER, CITATION
from tests.fakes.refs import FakeRefs
from tests.waiting import LIMIT_SECONDS, wait_until

TOKEN, OTHER = "citebot_of-ann", "citebot_of-bob"
URL = "https://git.example/demo/src/session.py#L10-L24"
CITED = replace(ANSWER, citations=(replace(CITATION, url=URL),))


class CitingAnswerer(FakeAnswerer):
    """Answers `where ...` with a citation, and everything else with what was asked."""

    def _answer(self, question: str, *, stopped: bool) -> Answer:
        return CITED if question.startswith("where") and not stopped else super()._answer(question, stopped=stopped)


class StraightRouter:
    """Takes a question to be about the repository that it was asked with, else about the first."""

    def __init__(self) -> None:
        self.contexts: list[str] = []

    def check(self, message: IncomingMessage) -> None:
        pass

    async def choose(self, message: IncomingMessage, context: str, **_: str) -> RepositoryChoice:
        self.contexts.append(context)
        return RepositoryChoice(repositories=message.about or ("demo",), why="asked", question=message.text)


class PinningRepositories(FakeRepositories):
    """Repositories of which each has a tag."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.refs |= {name: FakeRefs({"refs/tags/v1.0": "b" * 40}) for name in names}

    async def pin(self, repository: str | None = None, *, at: str = "") -> CodeSearch:
        name = repository or "demo"
        chooser = RefChooser(self.refs)
        ref = await chooser.find(name, at) if at else None
        return await (self.pin_existing(name) if ref is None else chooser.pin(name, ref))


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class World:
    """A server with the API, for Ann with `TOKEN` and Bob with `OTHER`; `secret` is for nobody."""

    answerer: CitingAnswerer
    surfaces: TeamSurfaces
    core: SurfaceCore
    router: StraightRouter
    connections: Connections
    observer: FakeObserver
    address: str = ""
    token: str = TOKEN
    sent: dict[str, str] = field(default_factory=dict)

    async def request(self, method: str, path: str, *, token: str | None = TOKEN, **options: Any) -> Reply:
        """Send a request; JSON is read."""
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **options.pop("headers", {})}
        timeout = aiohttp.ClientTimeout(total=LIMIT_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, f"{self.address}{path}", headers=headers, **options) as answer,
        ):
            text = await answer.text()
            is_json = answer.content_type.endswith("json")
            return Reply(answer.status, answer.headers, json.loads(text) if is_json else text)

    async def ask(self, question: str, **more: Any) -> Reply:
        """Ask, and wait for the answer."""
        headers = more.pop("headers", {})
        token = more.pop("token", TOKEN)
        body = {"question": question, **more}
        return await self.request("POST", "/api/ask", json=body, headers=headers, token=token)

    async def until_idle(self) -> None:
        """Wait until no run is in progress."""
        await wait_until(
            lambda: not (self.answerer._stops or self.surfaces._repeated._running),
            "no answer is under way",
        )


OpenWorld = Callable[..., AbstractAsyncContextManager[World]]


@asynccontextmanager
async def open_world(
    *,
    gate: asyncio.Event | None = None,
    counter: QuestionCounter | None = None,
    repositories: Sequence[str] = ("demo", "secret"),
    grace: float = 5.0,
    places: int = 8,
    most_long: int = 64,
) -> AsyncIterator[World]:
    answerer, router, observer = CitingAnswerer(gate=gate), StraightRouter(), FakeObserver()
    library = PinningRepositories(*repositories)
    access = AccessPolicy(rules=(AccessRule(repositories=("secret",), people=("slack:NOBODY",)),))
    questions = Questions(
        QuestionDeps(
            open_agent=lambda: nullcontext(answerer), repositories=library, chooser=router, queue=AnswerQueue(places),
            access=access, counter=counter, hosts=("git.example",), refs=RefChooser(library.refs),
            observer=observer,
        )
    )  # fmt: skip
    entries = [
        TokenTable(person="slack:ANN", sha256=hash_token(TOKEN)),
        TokenTable(person="slack:BOB", sha256=hash_token(OTHER)),
    ]
    core = SurfaceCore(
        lookups=CodeLookups(library=library, access=access, counter=counter),
        questions=questions,
        tokens=Tokens(entries),
        access=access,
    )
    surfaces = TeamSurfaces(has_api=True)
    surfaces._repeated._grace = grace
    connections = Connections(most_long=most_long)
    server = make_application()
    for join in surfaces.make():
        join(server.router)
    world = World(answerer, surfaces, core, router, connections, observer)
    listening = run_http_server(server, host="127.0.0.1", port=0, connections=connections)
    async with listening as world.address, surfaces.serve(core):
        yield world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with open_world() as opened:
        yield opened
