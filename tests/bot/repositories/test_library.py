"""Several repositories: named, refreshed one at a time, answered from what is indexed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import pytest

from agent.evidence.coverage import format_scope
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.repositories.library import BranchClone, RepositoryLibrary
from indexer.errors import NotIndexed, RemoteError, RepositoryError, StorageLocked
from indexer.types import IndexStatus, Progress, RefreshReport
from tests.fakes.parts import HEAD, FakeCode, FakeIndex
from tests.waiting import LIMIT_SECONDS, wait_for


class Quiet:
    """A display that shows nothing and remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @contextmanager
    def show_indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:
        yield lambda _: None

    def note(self, text: str) -> None:
        self.notes.append(text)


class SlowIndex(FakeIndex):
    """An index whose refreshes end when they are let go."""

    def __init__(self) -> None:
        super().__init__(current=False)
        self.gate = asyncio.Event()
        self.started = asyncio.Event()

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        self.refreshes.append(full)
        self.started.set()
        await self.gate.wait()
        if progress is not None:
            await asyncio.to_thread(progress, Progress(stage="parsing", done=1, total=3))
        return RefreshReport(commit=HEAD, previous=None, changed=0, removed=0, files=1, chunks=1, seconds=0)


@asynccontextmanager
async def library(
    clones: Mapping[str, BranchClone] | None = None, /, **indexes: FakeIndex
) -> AsyncIterator[RepositoryLibrary]:
    jobs = LocalRefreshJobs()
    books = RepositoryLibrary(indexes, Quiet(), jobs, clones=clones)
    async with jobs.work_on_refreshes(books.index_now):
        yield books


async def test_the_first_repository_is_meant_where_none_is_named() -> None:
    one, two = FakeIndex(), FakeIndex()
    async with library(one=one, two=two) as books:
        assert books.list_names() == ("one", "two")
        assert await books.pin() is one.code
        assert await books.pin("two") is two.code
        assert isinstance(await books.status("two"), IndexStatus)


@pytest.mark.parametrize("call", ["pin", "refresh", "status"])
async def test_a_repository_that_nobody_knows_is_a_sentence(call: str) -> None:
    async with library(one=FakeIndex(), two=FakeIndex()) as books:
        with pytest.raises(NotIndexed, match=r"There is no repository 'three' here\. There are: one, two\."):
            await getattr(books, call)("three")


async def test_a_repository_that_was_never_indexed_is_indexed_before_it_answers() -> None:
    index = FakeIndex(commit=None, current=False)

    async with library(one=index) as books:
        assert isinstance(await books.pin(), FakeCode)
    assert index.refreshes == [False]


async def test_what_is_behind_answers_at_once_and_is_refreshed_meanwhile() -> None:
    index = SlowIndex()
    async with library(one=index) as books:
        await books.pin()
        await books.pin()
        await wait_for(index.started.wait(), "index.started")

        assert index.refreshes == [False]
        index.gate.set()
        await books.refresh("one")


@pytest.mark.parametrize("ends_in_time", [True, False])
async def test_a_no_waits_a_little_for_a_refresh_and_says_where_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, ends_in_time: bool
) -> None:
    monkeypatch.setattr("bot.repositories.library.CATCH_UP_SECONDS", LIMIT_SECONDS if ends_in_time else 0.0)
    index = SlowIndex()
    async with library(one=index) as books:
        code = await books.pin()
        saying_no = [asyncio.create_task(code.coverage("nowhere")) for _ in range(2)]
        if ends_in_time:
            await wait_for(index.started.wait(), "index.started")
            index.gate.set()
        coverage = await asyncio.gather(*saying_no)
        index.gate.set()

    assert [one.is_behind for one in coverage] == [not ends_in_time] * 2
    assert "newer commits, which are still being indexed" in format_scope(code, coverage[0]) or ends_in_time


async def test_who_asks_for_a_refresh_under_way_joins_it_and_a_full_one_comes_after_it() -> None:
    index = SlowIndex()
    async with library(one=index) as books:
        asked = [asyncio.create_task(books.refresh("one", full=full)) for full in (False, False, True, True)]
        await wait_for(index.started.wait(), "index.started")
        index.gate.set()
        await asyncio.gather(*asked)

    assert index.refreshes == [False, True]


async def test_closing_stops_a_refresh(caplog: pytest.LogCaptureFixture) -> None:
    index = SlowIndex()
    async with library(one=index) as books:
        await books.pin()
        await wait_for(index.started.wait(), "index.started")
        index.gate.set()

    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_refresh_that_fails_is_logged_and_leaves_what_is_indexed(caplog: pytest.LogCaptureFixture) -> None:
    index = FakeIndex(current=False, error=StorageLocked("Another citebot is at it."))
    async with library(one=index) as books:
        assert await books.pin() is index.code
        with pytest.raises(StorageLocked):
            await books.refresh("one")
    assert "one was not indexed: Another citebot is at it." in caplog.text


async def test_a_repository_that_is_gone_is_answered_from_its_index(caplog: pytest.LogCaptureFixture) -> None:
    class Gone(FakeIndex):
        async def is_current(self) -> bool:
            raise RepositoryError("The repository is gone.")

    index = Gone()

    async with library(one=index) as books:
        assert await books.pin() is index.code
    assert index.refreshes == []
    assert "one: The repository is gone." in caplog.text


async def test_all_who_wait_for_a_refresh_are_told_how_far_it_is() -> None:
    index, told = SlowIndex(), list[tuple[str, int]]()
    async with library(one=index) as books:
        waiting = [
            asyncio.create_task(books.refresh("one", progress=lambda each, who=who: told.append((who, each.done))))  # type: ignore[misc]
            for who in ("ann", "bob")
        ]
        await wait_for(index.started.wait(), "index.started")
        index.gate.set()
        await asyncio.gather(*waiting)

    assert told == [("ann", 1), ("bob", 1)]
    assert index.refreshes == [False]


class Remote:
    """A clone that counts how often its host was asked."""

    def __init__(self, error: RemoteError | None = None) -> None:
        self.fetched = 0
        self._error = error

    async def newest(self) -> None:
        self.fetched += 1
        if self._error is not None:
            raise self._error

    async def renew(self) -> None:
        await self.newest()


async def test_the_newest_commit_is_fetched_before_it_is_indexed() -> None:
    remote, index = Remote(), FakeIndex()
    async with library({"one": remote}, one=index) as books:
        await books.refresh("one")
        await books.index_here("one")

    assert (remote.fetched, index.refreshes) == (1, [False, False])


async def test_a_host_that_is_down_is_told_to_who_asks_for_a_refresh() -> None:
    index = FakeIndex()
    async with library({"one": Remote(RemoteError("host down", "The host is down."))}, one=index) as books:
        with pytest.raises(RemoteError, match="The host is down"):
            await books.refresh("one")
    assert index.refreshes == []
