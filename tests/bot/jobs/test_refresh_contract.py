"""The contract of refresh jobs: none is lost, and many requests at once make one more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from bot.ports import RefreshCourse, RefreshJobs
from indexer import IndexerError, Progress, RefreshReport
from tests.bot.jobs.conftest import Jobs
from tests.waiting import expect


def make_report(seen: int) -> RefreshReport:
    return RefreshReport(
        commit=f"{seen:040}",
        previous=None,
        changed=seen,
        removed=0,
        files=1,
        chunks=1,
        seconds=0.5,
        warnings=("one is strange",),
    )


@dataclass
class Hosted:
    """Repositories to which people push; a refresh sees what was pushed before it began, and ends when it is let go."""

    pushed: int = 0
    indexed: int = 0
    most_at_once: int = 0
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.begun: list[tuple[str, bool]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._under_way: list[str] = []
        self._changed = asyncio.Condition()

    async def refresh(self, repository: str, full: bool, show: Callable[[Progress], None]) -> RefreshReport:
        self.begun.append((repository, full))
        self._under_way.append(repository)
        self.most_at_once = max(self.most_at_once, self._under_way.count(repository))
        seen = self.pushed
        await self._notify()
        try:
            await asyncio.to_thread(show, Progress(stage="parsing", done=1, total=3))
            await self.gate.wait()
            if self.error is not None:
                raise self.error
        finally:
            self._under_way.remove(repository)
        self.indexed = max(self.indexed, seen)
        await self._notify()
        return make_report(seen)

    async def until(self, done: Callable[[], bool]) -> None:
        async with expect("self._changed.wait_for(done)"), self._changed:
            await self._changed.wait_for(done)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def follow(course: RefreshCourse) -> tuple[list[Progress], RefreshReport]:
    """Follow a refresh to its end."""
    steps: list[Progress] = []
    async with expect("follow"):
        async for step in course:
            if isinstance(step, RefreshReport):
                return steps, step
            steps.append(step)
    raise AssertionError("a refresh ends with a report or an error")


async def push(hosted: Hosted, refreshes: RefreshJobs) -> None:
    hosted.pushed += 1
    await refreshes.ask_for_refresh("one")


async def test_who_asks_is_told_how_it_ends(jobs: Jobs) -> None:
    hosted = Hosted(pushed=4)
    async with jobs.refreshes.work_on_refreshes(hosted.refresh):
        _, report = await follow(await jobs.refreshes.ask_for_refresh("one"))

    assert report == make_report(4)


async def test_who_follows_a_refresh_sees_how_far_it_is(jobs: Jobs) -> None:
    hosted = Hosted()
    hosted.gate.clear()
    async with jobs.refreshes.work_on_refreshes(hosted.refresh):
        course = await jobs.refreshes.ask_for_refresh("one")
        async with expect("who follows a refresh sees how far it is"):
            assert await anext(course) == Progress(stage="parsing", done=1, total=3)
        hosted.gate.set()
        await follow(course)


@pytest.mark.parametrize("error", [IndexerError("The disk is full. Free some space."), RuntimeError("unheard of")])
async def test_who_asks_is_told_why_it_fails(jobs: Jobs, error: Exception) -> None:
    hosted = Hosted(error=error)
    async with jobs.refreshes.work_on_refreshes(hosted.refresh):
        with pytest.raises(Exception, match=str(error)):
            await follow(await jobs.refreshes.ask_for_refresh("one"))


async def test_fifty_pushes_during_a_refresh_are_one_more(jobs: Jobs) -> None:
    hosted = Hosted()
    hosted.gate.clear()
    async with jobs.refreshes.work_on_refreshes(hosted.refresh, at_once=4):
        await push(hosted, jobs.refreshes)
        await hosted.until(lambda: len(hosted.begun) == 1)
        for _ in range(50):
            await push(hosted, jobs.refreshes)
        hosted.gate.set()
        await hosted.until(lambda: hosted.indexed == 51)
        await follow(await jobs.refreshes.ask_for_refresh("two"))

    assert hosted.begun == [("one", False), ("one", False), ("two", False)]
    assert hosted.most_at_once == 1


async def test_no_push_is_lost_whenever_it_comes(jobs: Jobs) -> None:
    hosted = Hosted()
    async with jobs.refreshes.work_on_refreshes(hosted.refresh, at_once=4):
        for number in range(60):
            await push(hosted, jobs.refreshes)
            await asyncio.sleep(0.001 * (number % 7))
        await hosted.until(lambda: hosted.indexed == 60)

    assert hosted.most_at_once == 1
    assert len(hosted.begun) <= 60


async def test_a_push_in_any_gap_of_a_refresh_is_seen_by_the_next(jobs: Jobs) -> None:
    hosted = Hosted()

    async def refresh(repository: str, full: bool, show: Callable[[Progress], None]) -> RefreshReport:
        report = await hosted.refresh(repository, full, show)
        if hosted.pushed < 5:  # after it has looked, and before anybody knows that it has ended
            await push(hosted, jobs.refreshes)
        return report

    async with jobs.refreshes.work_on_refreshes(refresh, at_once=4):
        await push(hosted, jobs.refreshes)
        await hosted.until(lambda: hosted.indexed == 5)

    assert len(hosted.begun) == 5


async def test_a_full_refresh_that_anybody_wants_is_full_for_all(jobs: Jobs) -> None:
    hosted = Hosted()
    courses = [await jobs.refreshes.ask_for_refresh("one", full=full) for full in (False, True, False)]
    async with jobs.refreshes.work_on_refreshes(hosted.refresh):
        for course in courses:
            await follow(course)

    assert hosted.begun == [("one", True)]


async def test_one_under_way_can_be_joined_unless_it_is_less_than_wanted(jobs: Jobs) -> None:
    hosted = Hosted()
    hosted.gate.clear()
    async with jobs.refreshes.work_on_refreshes(hosted.refresh):
        await jobs.refreshes.ask_for_refresh("one")
        await hosted.until(lambda: len(hosted.begun) == 1)
        joined = await jobs.refreshes.ask_for_refresh("one", join=True)
        later = await jobs.refreshes.ask_for_refresh("one", full=True, join=True)
        hosted.gate.set()
        await follow(joined)
        await follow(later)

    assert hosted.begun == [("one", False), ("one", True)]


async def test_repositories_are_refreshed_side_by_side_but_so_many_only(jobs: Jobs) -> None:
    hosted = Hosted()
    hosted.gate.clear()
    async with jobs.refreshes.work_on_refreshes(hosted.refresh, at_once=2):
        courses = [await jobs.refreshes.ask_for_refresh(name) for name in ("one", "two", "three")]
        await hosted.until(lambda: len(hosted.begun) == 2)
        hosted.gate.set()
        for course in courses:
            await follow(course)

    assert dict.fromkeys(name for name, _ in hosted.begun) == dict.fromkeys(("one", "two", "three"))


async def test_what_a_worker_leaves_is_refreshed_by_the_next_one(jobs: Jobs) -> None:
    first, second = Hosted(), Hosted(pushed=7)
    first.gate.clear()
    async with jobs.refreshes.work_on_refreshes(first.refresh):
        under_way = await jobs.refreshes.ask_for_refresh("one")
        await first.until(lambda: len(first.begun) == 1)
        waiting = await jobs.refreshes.ask_for_refresh("one", full=True)
    async with jobs.refreshes.work_on_refreshes(second.refresh):
        ends: Mapping[str, RefreshReport] = {
            "under way": (await follow(under_way))[1],
            "waiting": (await follow(waiting))[1],
        }

    assert {report.changed for report in ends.values()} == {7}
    assert ("one", True) in second.begun
