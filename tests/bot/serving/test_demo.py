"""`citebot demo`: one command, and somebody without an account sees answers, citations and a push in a workspace."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest

from bot.adapters.local.workspace import Workspace
from bot.clock import SystemClock
from bot.errors import SettingsError
from bot.serving.local import serve_demo
from bot.settings import RepositoryTable, Settings
from bot.tasks import run_in_background
from tests.bot.surfaces.web.conftest import Visit
from tests.waiting import LIMIT_SECONDS, expect


@asynccontextmanager
async def open_demo(shop: Path) -> AsyncIterator[Visit]:
    """Serve the demo, and sign in to it."""
    told: asyncio.Queue[str] = asyncio.Queue()
    serving = serve_demo(Settings.load(), RepositoryTable(path=shop), told.put_nowait, port=0)
    jar, timeout = aiohttp.CookieJar(unsafe=True), aiohttp.ClientTimeout(total=LIMIT_SECONDS)
    async with run_in_background(serving), aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session:
        async with expect("the address of the workspace"):
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+/login\?t=\S+", await told.get())
        base = address.partition("/login")[0]
        visit = Visit(SimpleNamespace(address=base), session)
        await visit.get(address.removeprefix(base))
        yield visit


async def read_until(visit: Visit, path: str, *parts: str) -> str:
    """Look at a page at each change of the workspace, until all parts are there."""
    async with (
        expect(f"{parts} at {path}"),
        visit.session.get(f"{visit.site.address}/c/general/0/events?after=0") as stream,
    ):
        while True:
            page = (await visit.get(path))[1]
            if all(part in page for part in parts):
                return page
            await stream.content.readuntil(b"\n\n")
    raise AssertionError("the stream has ended")


def read_state(repository: Path) -> bytes:
    """Return where a repository stands, and what differs in its working tree."""
    words = ("git", "-C", str(repository), "status", "--porcelain=v2", "--branch")
    return subprocess.run(words, check=True, capture_output=True).stdout


@pytest.mark.usefixtures("home")
async def test_a_newcomer_asks_pushes_and_finds_it_all_again(shop: Path, home: Path) -> None:
    before, question = read_state(shop), "@citebot who calls parse_date?"
    async with open_demo(shop) as visit:
        await visit.post("/messages", {"channel": "general", "text": question})
        page = await read_until(visit, "/c/general/1", "3 calls of", "Helpful")
        assert re.findall(r'class="cite" href="(/messages/2/code/1)"', page)
        assert '<span class="nf">parse_date</span>' in (await visit.get("/messages/2/code/1"))[1]
        await visit.post("/push", {"channel": "general"})
        (sha,) = re.findall(r"pushed <code>(\w+)", await read_until(visit, "/c/general", "Ann pushed"))
        await read_until(visit, "/c/general/1", f"Outdated since <code>{sha}", "Answer again")
        await visit.post("/messages", {"channel": "dm-ann", "text": "reindex"})
        await read_until(visit, "/c/dm-ann", sha)
    assert read_state(shop) == before

    (place,) = (home / "demo").iterdir()
    async with Workspace.open(place, SystemClock()) as workspace:
        kept = await workspace.list_all()
    assert [each.author for each in kept] == ["ann", "citebot", "git", "ann", "citebot"]
    async with open_demo(shop) as visit:  # what was pushed is still there, and the code that was cited before
        await visit.post("/messages", {"channel": "dm-ann", "text": "status"})
        await read_until(visit, "/c/dm-ann", sha)
        assert "cited" in (await visit.get("/messages/2/code/1"))[1]


@pytest.mark.usefixtures("home")
async def test_a_repository_on_another_machine_is_refused() -> None:
    table = RepositoryTable(url="https://git.example/shop")
    with pytest.raises(SettingsError, match="--repo PATH"):
        await serve_demo(Settings.load(), table, print, port=0)
