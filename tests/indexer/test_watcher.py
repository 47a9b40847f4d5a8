"""The watcher: told, polling and looking, in bursts and through failures, on a clock that the test turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from indexer.errors import RemoteError, StorageLocked, StorageUnwritable
from indexer.git.local_head import LocalHead
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.types import BranchHead, IndexStatus, RefreshReport
from indexer.watcher import WatchedIndexes, WatchedSource, Watcher, WatchIntervals, WatchStatus
from tests.fakes.clock import FakeClock
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.repositories import GitRepo
from tests.waiting import wait_for, wait_for_end, wait_until


class FakeSource:
    """A repository whose commits are numbers; `broken` is raised by every look."""

    def __init__(self, name: str = "shop") -> None:
        self.name = name
        self.commit = 1
        self.remark = ""
        self.looks = 0
        self.broken: Exception | None = None

    async def newest(self) -> BranchHead:
        self.looks += 1
        if self.broken is not None:
            raise self.broken
        return BranchHead(
            commit=str(self.commit), branch="main", state="moved" if self.remark else "ready", remark=self.remark
        )


class FakeIndexes:
    """Indexes what a source shows at the end of a refresh, which takes some time."""

    def __init__(self, clock: FakeClock, *sources: FakeSource, seconds: float = 0.5) -> None:
        self.clock = clock
        self.sources = {source.name: source for source in sources}
        self.seconds = seconds
        self.indexed: dict[str, str] = {}
        self.began: list[tuple[str, float]] = []
        self.running: dict[str, int] = {}
        self.most = 0
        self.broken: Exception | None = None
        self.changed = asyncio.Event()

    async def status(self, name: str) -> IndexStatus:
        return status_of(name, self.indexed.get(name))

    async def index_here(self, name: str) -> RefreshReport:
        self.began.append((name, self.clock.now()))
        self.running[name] = self.running.get(name, 0) + 1
        assert self.running[name] == 1, "two refreshes of one repository"
        self.most = max(self.most, sum(self.running.values()))
        commit = str(self.sources[name].commit)
        try:
            await self.clock.sleep(self.seconds)
            if self.broken is not None:
                raise self.broken
        finally:
            self.running[name] -= 1
        self.indexed[name] = commit
        return report_of(commit)


def status_of(name: str, commit: str | None) -> IndexStatus:
    return IndexStatus(
        repository=name, path="", commit=commit, branch=None, indexed_at=None, commits_behind=None, files=0, chunks=0,
        symbols=0, embedder="static", disk_bytes=0, skipped={}, warnings=(),
    )  # fmt: skip


def report_of(commit: str) -> RefreshReport:
    return RefreshReport(commit=commit, previous=None, changed=0, removed=0, files=0, chunks=0, seconds=0)


@asynccontextmanager
async def watching(
    indexes: WatchedIndexes,
    clock: FakeClock,
    *,
    polled: tuple[WatchedSource, ...] = (),
    local: tuple[WatchedSource, ...] = (),
) -> AsyncIterator[Watcher]:
    watcher = Watcher(indexes, clock, polled=polled, local=local, jitter=lambda: 0.5)
    task = asyncio.create_task(watcher.run())
    try:
        await clock.advance(5)
        yield watcher
    finally:
        task.cancel()
        await wait_for_end(task, "the end of task")


async def test_what_is_there_at_the_start_is_indexed_once() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        await clock.advance(600)

    assert indexes.indexed == {"shop": "1"}
    assert len(indexes.began) == 1
    assert watcher.status()[0].state == "ready"


async def test_what_is_indexed_already_is_left_alone() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    indexes.indexed["shop"] = "1"
    async with watching(indexes, clock, polled=(source,)):
        await clock.advance(600)

    assert indexes.began == []


async def test_hosts_are_polled_every_minute_and_local_files_looked_at_every_second() -> None:
    clock, host, folder = FakeClock(), FakeSource("host"), FakeSource("folder")
    indexes = FakeIndexes(clock, host, folder)
    async with watching(indexes, clock, polled=(host,), local=(folder,)):
        before = host.looks, folder.looks
        await clock.advance(600)

    assert host.looks - before[0] == 10
    assert folder.looks - before[1] == 600


async def test_a_push_that_is_told_of_is_indexed_at_once() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        source.commit = 2
        watcher.notify("shop", "refs/heads/main", "2")
        await clock.advance(1)

    assert indexes.indexed["shop"] == "2"


async def test_a_push_without_a_webhook_is_found_by_polling() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)):
        source.commit = 2
        await clock.advance(61)

    assert indexes.indexed["shop"] == "2"


async def test_a_push_during_a_refresh_is_indexed_after_it() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source, seconds=30)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        source.commit = 2
        watcher.notify("shop", "refs/heads/main", "2")
        await clock.advance(26)
        assert indexes.indexed["shop"] == "1"
        await clock.advance(35)

    assert indexes.indexed["shop"] == "2"
    assert len(indexes.began) == 2


async def test_a_push_that_the_host_does_not_show_yet_is_looked_for_again() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        watcher.notify("shop", "refs/heads/main", "2")
        await clock.advance(1)
        source.commit = 2
        await clock.advance(4)

        assert indexes.indexed["shop"] == "2"
        watcher.notify("shop", "refs/heads/main", "never")
        before = source.looks
        await clock.advance(59)
        assert source.looks - before == 4


async def test_a_push_that_is_indexed_already_or_of_a_stranger_is_nothing() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        before = source.looks
        watcher.notify("shop", "refs/heads/main", "1")
        watcher.notify("unknown", "refs/heads/main", "2")
        await clock.advance(2)

    assert source.looks == before


async def test_a_host_that_is_down_is_asked_less_and_less_and_then_as_before() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        source.broken = RemoteError("host down", "shop cannot be reached.")
        before = source.looks
        await clock.advance(3_600)
        assert source.looks - before <= 9
        (status,) = watcher.status()
        assert (status.state, status.sentence, status.indexed) == ("host down", "shop cannot be reached.", "1")
        assert status.next_look is not None
        assert status.next_look - clock.now() <= 900
        source.broken = None
        source.commit = 2
        await clock.advance(900)

        (status,) = watcher.status()
        assert (status.state, status.sentence, status.failures, status.indexed) == ("ready", "", 0, "2")
        before = source.looks
        await clock.advance(120)
        assert source.looks - before == 2


async def test_a_failing_refresh_keeps_what_is_indexed_and_is_tried_again() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        indexes.broken = StorageUnwritable("The disk is full.")
        source.commit = 2
        watcher.notify("shop", "refs/heads/main", "2")
        await clock.advance(60)
        (status,) = watcher.status()
        assert (status.state, status.sentence) == ("failed", "The disk is full.")
        assert (status.indexed, status.commit, status.failures) == ("1", "2", 4)
        indexes.broken = None
        await clock.advance(60)

    (status,) = watcher.status()
    assert (status.state, status.sentence, status.indexed, status.failures) == ("ready", "", "2", 0)


async def test_an_index_that_another_process_writes_has_not_failed() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    indexes.broken = StorageLocked("Another citebot is indexing it.")
    async with watching(indexes, clock, polled=(source,)) as watcher:
        await clock.advance(1)

        assert [each.state for each in watcher.status()] == ["indexing elsewhere"]


async def test_a_failing_refresh_of_a_local_repository_is_not_tried_every_second() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    indexes.broken = StorageUnwritable("The disk is full.")
    async with watching(indexes, clock, local=(source,)):
        await clock.advance(600)

    assert 5 <= len(indexes.began) <= 10
    assert source.looks > 300


async def test_a_host_that_goes_down_after_a_failed_refresh_is_not_asked_all_the_time() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    indexes.broken = StorageUnwritable("The disk is full.")
    async with watching(indexes, clock, polled=(source,)):
        source.broken = RemoteError("host down", "away")
        await clock.advance(600)

    assert source.looks <= 8


async def test_what_nobody_foresaw_is_logged_and_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    clock, source, other = FakeClock(), FakeSource(), FakeSource("other")
    indexes = FakeIndexes(clock, source, other)
    async with watching(indexes, clock, polled=(source, other)) as watcher:
        source.broken = ZeroDivisionError("odd")
        await clock.advance(70)
        assert "ZeroDivisionError" in caplog.text
        assert "internal error" in watcher.status()[0].sentence
        source.broken, source.commit, other.commit = None, 2, 2
        await clock.advance(120)

    assert indexes.indexed == {"shop": "2", "other": "2"}
    assert watcher.status()[0].sentence == ""


async def test_one_kind_of_failure_after_another_is_no_busy_loop() -> None:
    clock, source = FakeClock(), FakeSource()
    indexes = FakeIndexes(clock, source)
    async with watching(indexes, clock, polled=(source,)):
        for error in (ZeroDivisionError("odd"), RemoteError("host down", "away"), None):
            source.broken = error
            await clock.advance(600)
            indexes.broken = StorageUnwritable("The disk is full.")
            source.commit += 1

    assert source.looks <= 40


async def test_one_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock, source = FakeClock(), FakeSource()
    caplog.set_level(logging.WARNING)
    source.broken = RemoteError("host down", "shop cannot be reached.")
    async with watching(FakeIndexes(clock, source), clock, local=(source,)):
        await clock.advance(60)

    assert caplog.text.count("cannot be reached") == 1


async def test_a_refresh_that_was_joined_too_late_is_followed_by_another() -> None:
    clock, source = FakeClock(), FakeSource()

    class Late(FakeIndexes):
        async def index_here(self, name: str) -> RefreshReport:
            report = await super().index_here(name)
            return report_of("0") if len(self.began) == 1 else report

    indexes = Late(clock, source)
    async with watching(indexes, clock, polled=(source,)) as watcher:
        await clock.advance(5)

    assert len(indexes.began) == 2
    assert watcher.status()[0].indexed == "1"


async def test_an_index_that_follows_another_branch_is_not_refreshed_for_ever() -> None:
    clock, source = FakeClock(), FakeSource()

    class Elsewhere(FakeIndexes):
        async def index_here(self, name: str) -> RefreshReport:
            await super().index_here(name)
            return report_of("0")

    indexes = Elsewhere(clock, source)
    async with watching(indexes, clock, polled=(source,)):
        await clock.advance(300)

    assert len(indexes.began) == 2


async def test_twenty_repositories_are_refreshed_two_at_a_time() -> None:
    clock = FakeClock()
    sources = tuple(FakeSource(f"shop-{number}") for number in range(20))
    indexes = FakeIndexes(clock, *sources)
    async with watching(indexes, clock, polled=sources):
        await clock.advance(10)

    assert len(indexes.indexed) == 20
    assert indexes.most == 2


async def test_what_is_worth_knowing_of_a_tip_is_in_the_status() -> None:
    clock, source = FakeClock(), FakeSource()
    source.remark = "shop has moved."
    async with watching(FakeIndexes(clock, source), clock, polled=(source,)) as watcher:
        (status,) = watcher.status()

    assert (status.state, status.sentence, status.branch, status.indexed) == ("moved", "shop has moved.", "main", "1")


# With real git


class Noting:
    """Indexes that note what they are asked for, and say when."""

    def __init__(self, *sources: WatchedSource) -> None:
        self.sources = {source.name: source for source in sources}
        self.commits: list[str] = []
        self.grown = asyncio.Condition()

    async def status(self, name: str) -> IndexStatus:
        return status_of(name, self.commits[-1] if self.commits else None)

    async def index_here(self, name: str) -> RefreshReport:
        commit = (await self.sources[name].newest()).commit
        async with self.grown:
            self.commits.append(commit)
            self.grown.notify_all()
        return report_of(commit)

    async def reached(self, commit: str) -> None:
        async with self.grown:
            await wait_for(
                self.grown.wait_for(lambda: commit in self.commits),
                f"{commit} is indexed",
            )


class QuickClock:
    """The real clock for what waits for git."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def watched(indexes: Noting, **sources: tuple[WatchedSource, ...]) -> AsyncIterator[Watcher]:
    pace = WatchIntervals(poll=0.2, look=0.02, gap=0.02, retry=0.05, ceiling=0.4, echo=0.1)
    watcher = Watcher(indexes, QuickClock(), pace=pace, **sources)  # type: ignore[arg-type]
    task = asyncio.create_task(watcher.run())
    try:
        yield watcher
    finally:
        task.cancel()
        await wait_for_end(task, "the end of task")


async def test_commits_and_checkouts_of_a_local_repository_are_noticed(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "repo")
    head = LocalHead("repo", repo.root)
    indexes = Noting(head)
    async with watched(indexes, local=(head,)) as watcher:
        await until(watcher, lambda status: "has no commit yet" in status.sentence)
        await indexes.reached(await on_disk(repo.commit, "first"))
        await indexes.reached(await on_disk(repo.commit, "second"))
        await on_disk(repo.branch, "other")
        await indexes.reached(await on_disk(repo.commit, "third"))
        await on_disk(repo.git, "pack-refs", "--all")
        indexes.commits.clear()
        await on_disk(repo.checkout, "main")
        await indexes.reached(repo.sha("main"))
        await on_disk(repo.checkout, repo.sha("other"))
        await indexes.reached(repo.sha("other"))


async def test_a_branch_is_noticed_whatever_is_checked_out(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "repo")
    repo.commit("first")
    worktree = tmp_path / "tree"
    repo.git("worktree", "add", "--quiet", "-b", "side", str(worktree))
    main, side = LocalHead("main", worktree, branch="main"), LocalHead("side", worktree)

    before = (await main.newest()).commit, (await side.newest()).commit
    repo.commit("second")
    after = (await main.newest()).commit, (await side.newest()).commit

    assert before == (repo.sha("side"), repo.sha("side"))
    assert after == (repo.sha("main"), repo.sha("side"))
    assert (await main.newest()).branch == "main"


async def test_a_local_repository_that_is_away_is_told_and_found_again(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "repo")
    repo.commit("first")
    head = LocalHead("repo", repo.root)
    indexes = Noting(head)
    async with watched(indexes, local=(head,)) as watcher:
        await indexes.reached(repo.sha())
        repo.root.rename(tmp_path / "away")
        await until(watcher, lambda status: status.state == "failed")
        (tmp_path / "away").rename(repo.root)
        await indexes.reached(await on_disk(repo.commit, "second"))
        await until(watcher, lambda status: status.state == "ready")


async def test_pushes_to_a_host_are_noticed_through_force_outage_and_rename(tmp_path: Path) -> None:
    async with serving(GitHost(tmp_path / "host")) as host:
        repo = GitRepo(tmp_path / "repo")
        repo.commit("first")
        repo.git("remote", "add", "origin", str(published(repo.root, host, "shop.git")))
        shop = RemoteClone(RemoteRepository(name="shop", url=f"{host.url}/shop.git", branch="main"), tmp_path / "home")
        indexes = Noting(shop)
        async with watched(indexes, polled=(shop,)) as watcher:
            await indexes.reached(repo.sha())
            await on_disk(repo.git, "commit", "--quiet", "--allow-empty", "--amend", "--message", "again")
            await on_disk(repo.git, "push", "--quiet", "--force", "origin", "main")
            await indexes.reached(repo.sha())
            host.status = 503
            await until(watcher, lambda status: status.state == "host down")
            await on_disk(repo.commit, "meanwhile")
            await on_disk(repo.git, "push", "--quiet", "origin", "main", "main:trunk")
            host.status = None
            await indexes.reached(repo.sha())
            await on_disk(repo.git, "push", "--quiet", "origin", "--delete", "main")
            await until(watcher, lambda status: status.state == "branch gone" and "trunk" in status.sentence)
            assert watcher.status()[0].indexed == repo.sha()


async def on_disk(work: Callable[..., str | None], *arguments: str) -> str:
    """Run git in a thread, so that the watcher runs meanwhile."""
    return await asyncio.to_thread(work, *arguments) or ""


async def until(watcher: Watcher, done: Callable[[WatchStatus], bool]) -> None:
    """Wait until the status of the one repository is so."""
    await wait_until(lambda: done(watcher.status()[0]), "done(watcher.status()[0])")
