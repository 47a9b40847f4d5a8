"""Goal runs of a team outside chats, over the real server: Ben asks, and Ann and Dan may start what he asks for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import SecretStr

from agent.llm.models import open_models
from agent.persistence.checkpointer import open_saver
from bot.access import AccessPolicy, AccessRule
from bot.conversations.assembly import ChatPolicy, open_conversations
from bot.http.server import make_application, run_http_server
from bot.messages import SURFACE
from bot.serving.service import TeamSurfaces
from bot.settings import TokenTable
from bot.storage.database import open_database
from bot.storage.rate_limits import QuestionLimits
from bot.surfaces.code_lookups import CodeLookups
from bot.surfaces.goal_runs import SurfaceReplies, TeamGoalRuns
from bot.surfaces.principals import Tokens, hash_token
from bot.surfaces.questions import Questions
from bot.surfaces.team_surfaces import SurfaceCore
from bot.surfaces.web.request_guard import LoginLink
from bot.surfaces.web.web_surface import WebOptions
from tests.agent.conftest import redact
from tests.agent.goals.conftest import PARSER, GoalBench
from tests.bot.surfaces.cores import Library, make_team
from tests.fakes.answerer import FakeAnswerer
from tests.fakes.gemini import FakeGemini
from tests.fakes.unconfined import FolderCopies
from tests.waiting import LIMIT_SECONDS, expect

PEOPLE = {"ann": "slack:ann", "ben": "slack:ben", "dan": "discord:dan", "kim": "slack:kim", "eve": "slack:eve"}
# Of those who may ask about the shop, Kim may start nothing there; Eve may start runs, and see none of its code.
ACCESS = AccessPolicy(
    run=("slack:ann", "dan", "slack:eve", "terminal:local"),
    rules=(
        AccessRule(
            repositories=("shop",), people=("ann", "ben", "discord:dan", "kim", "terminal:local"), channels=("direct",)
        ),
    ),
)


@dataclass
class ApiCaller:
    """People who ask the API of a server about goal runs, each with a token."""

    address: str
    session: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def open(cls, address: str) -> AsyncIterator[ApiCaller]:
        """Call a server that citebot serves elsewhere."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_SECONDS)) as session:
            yield cls(address, session)

    async def call(
        self, who: str, path: str = "", body: Mapping[str, Any] | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Ask the API about goal runs as somebody; with a body, have something done."""
        headers = {"Authorization": f"Bearer citebot_of-{who}", **headers}
        method, url = "GET" if body is None else "POST", f"{self.address}/api/runs{path}"
        async with self.session.request(method, url, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def follow(self, who: str, run: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the states of a run until it has ended."""
        headers = {"Authorization": f"Bearer citebot_of-{who}", "Accept": "text/event-stream"}
        async with (
            expect("the end of the run"),
            self.session.get(f"{self.address}/api/runs/{run}", headers=headers) as answer,
        ):
            assert answer.status == 200
            async for line in answer.content:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    async def see_end(self, who: str, run: str) -> dict[str, Any]:
        """Follow a run to its end."""
        return [state async for state in self.follow(who, run)][-1]


@dataclass
class GoalTeam(ApiCaller):
    """A server with the API and the page."""

    bench: GoalBench
    gemini: FakeGemini
    link: LoginLink


@asynccontextmanager
async def open_team(folder: Path, gemini: FakeGemini, limits: QuestionLimits | None = None) -> AsyncIterator[GoalTeam]:
    """Serve a team whose model follows a script."""
    library, copies = Library("shop", "vault"), folder / "copies"
    copies.mkdir()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        saver = await enter(open_saver(folder / "conversations.db"))
        models = await enter(open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url))
        bench = GoalBench(
            saver=saver, models=models, gemini=gemini, copies=FolderCopies(PARSER, copies), files=dict(PARSER)
        )
        policy = ChatPolicy(access=ACCESS, limits=limits or QuestionLimits(per_minute=1_000), mask=redact)
        store = open_database(folder / "inbox.sqlite")
        opening = open_conversations(FakeAnswerer(), library, store=store, policy=policy, goals=bench.open_agent())
        conversations = await enter(opening)
        deps = conversations.deps
        await enter(conversations.open())
        await enter(conversations.connect_platform(SURFACE, SurfaceReplies(deps.shareable)))
        tokens = [TokenTable(person=person, sha256=hash_token(f"citebot_of-{name}")) for name, person in PEOPLE.items()]
        core = SurfaceCore(
            lookups=CodeLookups(library=library, access=ACCESS, mask=deps.mask, counter=deps.counter),
            questions=Questions(deps), tokens=Tokens(tokens), access=ACCESS, runs=TeamGoalRuns(conversations),
        )  # fmt: skip
        link = LoginLink()
        surfaces, server = (
            TeamSurfaces(has_api=True, page=WebOptions(tokens=core.tokens, link=link)),
            make_application(),
        )
        for join in surfaces.make():
            join(server.router)
        address = await enter(run_http_server(server, host="127.0.0.1", port=0))
        await enter(surfaces.serve(core))
        await enter(surfaces.serve_page(core, make_team(library), conversations))
        session = await enter(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_SECONDS)))
        yield GoalTeam(address, session, bench, gemini, link)
