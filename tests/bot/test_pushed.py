"""From a push to an answer's commit, with every real part between the host and the index."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from pydantic import SecretStr

from bot.clock import SystemClock
from bot.library import Library
from bot.webhooks.endpoint import push_webhook
from indexer.index import CodeIndex
from indexer.models import Progress
from indexer.remotes.clone import Clone
from indexer.remotes.configured import RemoteRepository
from indexer.watcher import Pace, Watcher
from tests.fakes import pushes
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.repositories import GitRepo


class Unseen:
    """A display that shows nothing."""

    @contextmanager
    def indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:
        yield lambda _: None

    def note(self, text: str) -> None:
        pass


@asynccontextmanager
async def listening(watcher: Watcher, remote: RemoteRepository) -> AsyncIterator[str]:
    """Run the endpoint; its address."""
    app = web.Application()
    app.router.add_post("/push", push_webhook([remote], [SecretStr(pushes.SECRET)], watcher.notify, SystemClock()))
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/push"
    finally:
        await runner.cleanup()


async def indexed(watcher: Watcher, commit: str) -> None:
    async with asyncio.timeout(20):
        while watcher.status()[0].indexed != commit:  # noqa: ASYNC110 - a status tells nobody that it changed
            await asyncio.sleep(0.02)


@pytest.fixture
def work(tmp_path: Path) -> GitRepo:
    work = GitRepo(tmp_path / "work")
    work.write("shop.py", "def sell() -> None: ...\n")
    work.commit("first")
    return work


async def post(url: str, delivery: pushes.Delivery) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=delivery.body, headers=delivery.headers) as response,
    ):
        return response.status


async def test_a_push_is_searchable_soon_after_the_webhook_and_readers_keep_their_commit(
    work: GitRepo, tmp_path: Path
) -> None:
    async with serving(GitHost(tmp_path / "host", password="t0ken")) as host:
        work.git("remote", "add", "origin", str(published(work.root, host, "team/shop.git")))
        remote = RemoteRepository(name="shop", url=f"{host.url}/team/shop.git", token=SecretStr("t0ken"))
        clone = Clone(remote, tmp_path / "home")
        await clone.prepare()
        index = await CodeIndex.open(clone.path, home=tmp_path / "home", name=remote.name, web_url=remote.page)
        library = Library({"shop": index}, Unseen())
        watcher = Watcher(library, SystemClock(), polled=[clone], pace=Pace(poll=3_600, gap=0.1))
        watching = asyncio.create_task(watcher.run())
        try:
            async with listening(watcher, remote) as url:
                await indexed(watcher, work.sha())
                old = await library.pin("shop")
                work.write("till.py", "def open_till() -> None: ...\n")
                await asyncio.to_thread(work.commit, "second")
                await asyncio.to_thread(work.git, "push", "--quiet", "origin", "main")
                assert await post(url, pushes.github(after=work.sha())) == 202
                await indexed(watcher, work.sha())
            new = await library.pin("shop")
            assert [entry.path for entry in await new.files()] == ["shop.py", "till.py"]
            assert [entry.path for entry in await old.files()] == ["shop.py"]
            assert (await library.status("shop")).repository == "shop"
        finally:
            watching.cancel()
            await asyncio.wait({watching}, timeout=5)
            await library.aclose()
            await index.aclose()
