"""Repositories that a person may not ask about do not exist for them: no name, count or error tells, on any surface."""

from __future__ import annotations

import html
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.errors import BotError
from bot.surfaces.code_lookups import ListArguments
from indexer import IndexerError
from tests.bot.surfaces.cores import HOSTILE, PEOPLE, TOKENS, Served, look_up, open_served
from tests.bot.surfaces.mcp_clients import connected, text_of
from tests.selection import mark_all_but


class Driver(ABC):
    """A surface as one person uses it. Every method returns all that comes back, as text.

    A surface without lookups asks in their stead. `refusal` is how one is refused, and `unclear` what is said where one
    is to be named.
    """

    refusal = "that you may ask about. There are: shop."
    unclear = "Name one: shop, private."

    @abstractmethod
    async def list_all(self) -> str:
        """List the repositories."""

    @abstractmethod
    async def search(self, query: str, repository: str | None, at: str | None = None) -> str:
        """Search in one, at a branch, a tag or a commit."""

    @abstractmethod
    async def find(self, name: str, repository: str | None, at: str | None = None) -> str:
        """Look up a definition."""

    @abstractmethod
    async def call(self, name: str, repository: str | None, at: str | None = None) -> str:
        """Look up who calls something."""

    @abstractmethod
    async def ask(self, question: str, repository: str | None, at: str | None = None) -> str:
        """Ask."""


class CoreDriver(Driver):
    """The core itself, which all surfaces are made of."""

    def __init__(self, served: Served, person: str) -> None:
        self._core, self._principal = served.core, PEOPLE[person]

    async def list_all(self) -> str:
        return (await self._core.lookups.list_repositories(self._principal, ListArguments())).model_dump_json()

    async def search(self, query: str, repository: str | None, at: str | None = None) -> str:
        return await self._tell("search_code", query=query, repository=repository, at=at)

    async def find(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self._tell("find_symbol", name=name, repository=repository, at=at)

    async def call(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self._tell("find_callers", name=name, repository=repository, at=at)

    async def ask(self, question: str, repository: str | None, at: str | None = None) -> str:
        run = self._core.questions.begin(self._principal, question, surface="web", repository=repository, at=at)
        async with aclosing(run.stream()) as events:
            return "\n".join([event.model_dump_json() async for event in events])

    async def _tell(self, lookup: str, /, **args: Any) -> str:
        try:
            found: str = (await look_up(self._core.lookups, self._principal, lookup, **args)).model_dump_json()
        except (BotError, IndexerError) as error:
            return str(error)
        return found


class McpDriver(Driver):
    """MCP over HTTP."""

    def __init__(self, served: Served, person: str) -> None:
        self._address, self._token = served.address, TOKENS[person]

    async def list_all(self) -> str:
        return await self._call("list_repositories", {})

    async def search(self, query: str, repository: str | None, at: str | None = None) -> str:
        return await self._call("search_code", {"query": query, "repository": repository, "at": at})

    async def find(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self._call("find_symbol", {"name": name, "repository": repository, "at": at})

    async def call(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self._call("find_callers", {"name": name, "repository": repository, "at": at})

    async def ask(self, question: str, repository: str | None, at: str | None = None) -> str:
        return await self._call("ask", {"question": question, "repository": repository, "at": at})

    async def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        async with connected(self._address, self._token) as client:
            result = await client.call_tool(tool, arguments)
            return text_of(result) + json.dumps(result.structured_content)


class ApiDriver(Driver):
    """The HTTP API."""

    def __init__(self, served: Served, person: str) -> None:
        self._address, self._headers = served.address, {"Authorization": f"Bearer {TOKENS[person]}"}

    async def list_all(self) -> str:
        return await self._get("/api/status", {})

    async def search(self, query: str, repository: str | None, at: str | None = None) -> str:
        return await self._get("/api/search", {"q": query, "repository": repository, "at": at})

    async def find(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self._get("/api/symbols", {"name": name, "repository": repository, "at": at})

    async def call(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self._get("/api/callers", {"name": name, "repository": repository, "at": at})

    async def ask(self, question: str, repository: str | None, at: str | None = None) -> str:
        given = {"repository": repository, "at": at}
        body = {"question": question} | {name: value for name, value in given.items() if value}
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.post(f"{self._address}/api/ask", json=body) as answer,
        ):
            return await answer.text()

    async def _get(self, path: str, query: dict[str, str | None]) -> str:
        given = {name: value for name, value in query.items() if value is not None}
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.get(f"{self._address}{path}", params=given) as answer,
        ):
            return await answer.text()


class AskingDriver(Driver):
    """A surface on which one asks and looks nothing up; a branch or tag is named in the question."""

    async def search(self, query: str, repository: str | None, at: str | None = None) -> str:
        return await self.ask(query, repository, at)

    async def find(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self.ask(f"where is {name}?", repository, at)

    async def call(self, name: str, repository: str | None, at: str | None = None) -> str:
        return await self.ask(f"who calls {name}?", repository, at)

    async def ask(self, question: str, repository: str | None, at: str | None = None) -> str:
        return await self._ask(question if at is None else f"on {at}, {question}", repository)

    @abstractmethod
    async def _ask(self, question: str, repository: str | None) -> str:
        """Ask."""


class CompletionsDriver(AskingDriver):
    """What clients of OpenAI use: each repository is a model."""

    refusal = "/v1/models lists those that there are for you."
    unclear = "Ask again and name it: shop, private."

    def __init__(self, served: Served, person: str) -> None:
        self._address, self._headers = f"{served.address}/v1", {"Authorization": f"Bearer {TOKENS[person]}"}

    async def list_all(self) -> str:
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.get(f"{self._address}/models") as answer,
        ):
            return await answer.text()

    async def _ask(self, question: str, repository: str | None) -> str:
        model = f"citebot/{repository}" if repository else "citebot"
        body = {"model": model, "messages": [{"role": "user", "content": question}]}
        said = []
        for is_streamed in (False, True):
            async with (
                aiohttp.ClientSession(headers=self._headers) as session,
                session.post(f"{self._address}/chat/completions", json=body | {"stream": is_streamed}) as answer,
            ):
                said.append(await answer.text())
        return "\n".join(said)


class PageDriver(AskingDriver):
    """The page of `serve`, in a browser of its own for each use."""

    unclear = "Ask again and name it: shop, private."

    def __init__(self, served: Served, person: str) -> None:
        self._address, self._token = served.address, TOKENS[person]

    async def list_all(self) -> str:
        async with self._signed_in() as browser:
            return "\n".join([await self._read(browser, path) for path in ("/", "/repositories", "/runs")])

    async def _ask(self, question: str, repository: str | None) -> str:
        async with self._signed_in() as browser:
            csrf = re.findall(r'name="csrf" value="([^"]+)"', await self._read(browser, "/"))[0]
            form = {"csrf": csrf, "question": question, "repository": repository or ""}
            headers = {"Origin": self._address, "HX-Request": "true"}
            async with browser.post(f"{self._address}/ask", data=form, headers=headers) as answer:
                begun = await answer.text()
            turn = re.findall(r'data-stream="([^"]+)"', begun)[0]
            await self._read(browser, turn)
            events = await self._read(browser, turn)  # once it is over, as its steps come together or apart
            course = await self._read(browser, turn.replace("/events", "/course"))
            indexing = {"csrf": csrf, "repository": repository or "nosuch"}
            async with browser.post(f"{self._address}/repositories/reindex", data=indexing, headers=headers) as answer:
                refused = await answer.text()
        told = "\n".join([begun, events, course, refused])
        return re.sub(r"[\w-]{16,}", "ID", html.unescape(told))  # of turns and sessions, which are new each time

    @asynccontextmanager
    async def _signed_in(self) -> AsyncIterator[aiohttp.ClientSession]:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            form, headers = {"token": self._token}, {"Origin": self._address}
            async with browser.post(f"{self._address}/login", data=form, headers=headers) as answer:
                assert answer.status == 200
            yield browser

    async def _read(self, browser: aiohttp.ClientSession, path: str) -> str:
        async with browser.get(self._address + path) as answer:
            return await answer.text()


MAKERS: dict[str, Callable[[Served, str], Driver]] = {
    "core": CoreDriver,
    "mcp": McpDriver,
    "api": ApiDriver,
    "completions": CompletionsDriver,
    "page": PageDriver,
}
Open = Callable[[str], AbstractAsyncContextManager[Driver]]


LOOKED_AT = [
    name for name, maker in MAKERS.items() if not (isinstance(maker, type) and issubclass(maker, AskingDriver))
]


@pytest.fixture(params=MAKERS)
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(person: str) -> AsyncIterator[Driver]:
        async with open_served(tmp_path) as served:
            yield MAKERS[request.param](served, person)

    return opened


async def test_a_person_is_shown_their_own_repositories_alone(opening: Open) -> None:
    async with opening("ben") as ben:
        said = [
            await ben.list_all(),
            await ben.search("only_in_vault only_in_private date", None),
            await ben.call("only_in_vault", None),
            await ben.ask("what does the code do?", None),
        ]

    for each in said:
        assert "shop" in each
        assert "vault" not in each.replace("only_in_vault", "")
        assert "private" not in each.replace("only_in_private", "")


async def test_a_repository_of_others_is_refused_in_the_words_for_one_that_is_not_there(opening: Open) -> None:
    async with opening("ben") as ben:
        uses: tuple[Callable[[str], Awaitable[str]], ...] = (
            lambda name: ben.search("date", name),
            lambda name: ben.call("parse_date", name),
            lambda name: ben.ask("who sells?", name),
            lambda name: ben.ask("who sells?", name, "release-2.1"),
        )
        for use in uses:
            said = {name: await use(name) for name in ("vault", "private", "nosuch")}

            told = {text.replace(name, "NAME") for name, text in said.items()}
            assert len(told) == 1, said
            assert ben.refusal in said["vault"]


async def test_a_question_that_names_a_repository_of_others_does_not_reach_it(opening: Open) -> None:
    async with opening("ben") as ben:
        said = await ben.ask("in vault, what is only_in_vault?", None)

    assert "src/session.py" not in said or "vault/" not in said
    assert '"repository":"vault"' not in said.replace(" ", "")


async def test_who_may_ask_about_nothing_is_told_so_and_no_more(opening: Open) -> None:
    async with opening("eve") as eve:
        said = [
            await eve.list_all(),
            await eve.search("date", None),
            await eve.search("date", "shop"),
            await eve.ask("who sells?", None),
            await eve.ask("who sells?", "shop"),
        ]

    assert said[0].count("commit") == 0 or "shop" not in said[0]
    for each in said:
        assert not any(name in each for name in ("vault", "private", HOSTILE))
        assert "shop" not in re.sub(r"""['"](citebot/)?shop['"]""", "", each)


@pytest.mark.exhaustive
async def test_who_may_ask_about_several_has_to_say_which(opening: Open) -> None:
    async with opening("ann") as ann:
        listed = await ann.list_all()
        unclear = await ann.search("date", None)
        private = await ann.search("only_in_private", "private")

    assert "private" in listed
    assert "vault" not in listed
    assert ann.unclear in unclear
    assert "private_only.py" in private or "only_in_private" in private


@pytest.mark.parametrize("opening", LOOKED_AT, indirect=True)
@pytest.mark.exhaustive
async def test_any_ref_of_an_own_repository_is_read_at_its_commit(opening: Open) -> None:
    async with opening("ben") as ben:
        released = [
            await ben.search("at_aaaa", "shop", "release-2.1"),
            await ben.find("at_aaaa", None, "release-2.1"),
            await ben.ask("who sells?", "shop", "release-2.1"),
        ]
        tagged = await ben.find("at_bbbb", "shop", "1.0")
        newest = await ben.find("only_in_shop", "shop", "main")

    assert all("a" * 40 in each for each in released[:2])
    assert "Read shop at release-2.1, commit" in released[2]
    assert "shop_only.py" in tagged
    assert "shop_only.py" in newest


@pytest.mark.parametrize("opening", LOOKED_AT, indirect=True)
@pytest.mark.exhaustive
async def test_a_ref_that_is_not_there_is_refused_with_the_nearest_names(opening: Open) -> None:
    async with opening("ben") as ben:
        said = [
            await ben.search("date", "shop", "release-2.2"),
            await ben.call("parse_date", "shop", "release-2.2"),
            await ben.ask("who sells?", "shop", "release-2.2"),
            await ben.ask("on release-2.2, who sells?", "shop"),
        ]

    for each in said:
        assert "shop has no branch, tag or commit 'release-2.2'. The nearest names are release-2.1" in each


@pytest.mark.parametrize("opening", LOOKED_AT, indirect=True)
@pytest.mark.parametrize("at", mark_all_but(["vault-next"], ["vault-next", "a" * 40, "-x"]))
async def test_no_ref_of_a_repository_of_others_tells_that_it_is_there(opening: Open, at: str) -> None:
    async with opening("ben") as ben:
        uses: tuple[Callable[[str], Awaitable[str]], ...] = (
            lambda name: ben.search("date", name, at),
            lambda name: ben.find("date", name, at),
            lambda name: ben.call("parse_date", name, at),
            lambda name: ben.ask("who sells?", name, at),
            lambda name: ben.ask(f"what changed between {at} and main?", name),
        )
        for use in uses:
            said = {name: await use(name) for name in ("vault", "private", "nosuch")}

            assert len({text.replace(name, "NAME") for name, text in said.items()}) == 1, said
            assert "that you may ask about. There are: shop." in said["vault"]
            assert "nearest names" not in said["vault"]
        pinned = await ben.search("date", f"vault@{'a' * 40}")
        unpinned = await ben.search("date", f"nosuch@{'a' * 40}")

    assert pinned.replace("vault", "NAME") == unpinned.replace("nosuch", "NAME")


@pytest.mark.exhaustive
async def test_who_may_ask_about_nothing_learns_of_no_ref(opening: Open) -> None:
    async with opening("eve") as eve:
        said = [await eve.search("date", name, "release-2.2") for name in (None, "shop", "vault")]
        said.append(await eve.ask("on release-2.2, who sells?", None))

    assert not any("release-2.1" in each or "nearest" in each for each in said)
