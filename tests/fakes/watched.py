"""A repository on a host, watched and indexed with every real part, as `citebot serve` does it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from pydantic import SecretStr
from starlette.routing import Route

from bot.clock import Clock, SystemClock
from bot.http.server import make_application, run_http_server
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.repositories.library import RepositoryLibrary
from bot.webhooks.push_endpoint import make_push_handler
from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.types import IndexStatus, Progress, RefreshReport
from indexer.watcher import Watcher, WatchIntervals, WatchStatus
from tests.fakes import pushes
from tests.waiting import wait_for_end, wait_until


class Unseen:
    """A display that shows nothing."""

    @contextmanager
    def show_indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:
        yield lambda _: None

    def note(self, text: str) -> None:
        pass


class Counted:
    """The library as the watcher sees it, with the reports of its refreshes."""

    def __init__(self, library: RepositoryLibrary) -> None:
        self._library = library
        self.reports: list[RefreshReport] = []

    async def status(self, name: str) -> IndexStatus:
        return await self._library.status(name)

    async def index_here(self, name: str) -> RefreshReport:
        report = await self._library.index_here(name)
        self.reports.append(report)
        return report


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One repository from its host to its readers; `url` takes webhooks."""

    remote: RemoteRepository
    index: CodeIndex
    library: RepositoryLibrary
    counted: Counted
    watcher: Watcher
    url: str

    @property
    def status(self) -> WatchStatus:
        return self.watcher.status()[0]

    async def until(self, done: Callable[[WatchStatus], bool]) -> None:
        """Wait until the watch has come so far."""
        await wait_until(lambda: done(self.status), "done(self.status)")

    async def indexed(self, commit: str) -> IndexReader:
        """Wait until a commit is indexed, and hold it."""
        await self.until(lambda status: status.indexed == commit)
        return await self.index.pin()

    async def told(self, delivery: pushes.Delivery) -> None:
        """Post a webhook, which is taken."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url, data=delivery.body, headers=delivery.headers) as response,
        ):
            assert response.status == 202


@asynccontextmanager
async def watched(
    remote: RemoteRepository, home: Path, *, clock: Clock | None = None, pace: WatchIntervals | None = None
) -> AsyncIterator[Watched]:
    """Open everything, and watch; unless told of pushes, the watcher looks once."""
    clone = RemoteClone(remote, home)
    await clone.prepare()
    index = await CodeIndex.open(clone.path, home=home, name=remote.name, web_url=remote.page)
    jobs = LocalRefreshJobs()
    library = RepositoryLibrary({remote.name: index}, Unseen(), jobs, clones={remote.name: clone})
    counted = Counted(library)
    watcher = Watcher(counted, clock or SystemClock(), polled=[clone], pace=pace or WatchIntervals(poll=3_600, gap=0.1))
    library.follow(watcher.settle)
    watching = asyncio.create_task(watcher.run())
    app, secrets = make_application(), [SecretStr(pushes.SECRET)]
    handler = make_push_handler([remote], secrets, watcher.notify, SystemClock())
    app.router.routes.append(Route("/", handler, methods=["POST"]))
    try:
        async with (
            jobs.work_on_refreshes(library.index_now),
            run_http_server(app, host="127.0.0.1", port=0) as url,
        ):
            yield Watched(remote=remote, index=index, library=library, counted=counted, watcher=watcher, url=url)
    finally:
        watching.cancel()
        await wait_for_end(watching, "the end of watching")
        await index.aclose()
