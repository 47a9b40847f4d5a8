"""Processes that work on the queue in Postgres and are killed or stopped: nothing is lost, and nothing said twice."""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.jobs.job_queue import JobQueue, open_job_queue
from bot.jobs.queued_jobs import QueuedAnswerJobs
from tests.bot.jobs.conftest import make_queue_database, open_refreshes
from tests.bot.jobs.test_refresh_contract import follow
from tests.fakes.job_worker import TABLES, TIMES, run_sql, start_workers, until_rows
from tests.forks import Fork, ForkServer

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("postgres")]


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with make_queue_database() as address:
        for table in TABLES:
            await run_sql(address, table)
        yield address


@pytest_asyncio.fixture
async def queue(url: str) -> AsyncIterator[JobQueue]:
    async with open_job_queue(url, times=TIMES) as opened:
        yield opened


async def until_settled(url: str, count: int) -> None:
    await until_rows(url, f"SELECT 1 FROM settled HAVING count(*) = {count}")


async def find_who_began(url: str, entry: int, workers: list[Fork]) -> Fork:
    ((pid,),) = await until_rows(url, f"SELECT pid FROM begun WHERE entry = {entry} ORDER BY id DESC LIMIT 1")
    return next(worker for worker in workers if worker.pid == pid)


async def test_killed_and_stopped_workers_lose_nothing_and_keep_the_order(
    url: str, queue: JobQueue, forks: ForkServer
) -> None:
    jobs = QueuedAnswerJobs(queue)
    async with start_workers(forks, url, 3) as workers:
        for entry in range(150):
            await jobs.ask_for_answer(entry, f"conversation {entry % 15}")
            if entry in {40, 80}:
                workers[entry // 40].send(signal.SIGKILL if entry == 40 else signal.SIGSTOP)
        await until_rows(url, "SELECT 1 FROM settled HAVING count(*) >= 100")
        await asyncio.sleep(2 * TIMES.stalled)  # longer than anybody believes in a worker that is stopped
        workers[2].send(signal.SIGCONT)
        await until_settled(url, 150)

    order = defaultdict(list)
    for (entry,) in await run_sql(url, "SELECT entry FROM settled ORDER BY id"):
        order[entry % 15].append(entry)
    assert all(entries == sorted(entries) for entries in order.values())


async def test_what_a_killed_worker_was_at_goes_on_before_what_came_later(
    url: str, queue: JobQueue, forks: ForkServer
) -> None:
    jobs = QueuedAnswerJobs(queue)
    async with start_workers(forks, url, 2, seconds=1.0) as workers:
        await jobs.ask_for_answer(1, "c")
        await jobs.ask_for_answer(2, "c")
        (await find_who_began(url, 1, workers)).send(signal.SIGKILL)
        await until_settled(url, 2)

    assert await run_sql(url, "SELECT entry FROM settled ORDER BY id") == [(1,), (2,)]
    assert await run_sql(url, "SELECT entry FROM begun ORDER BY id") == [(1,), (1,), (2,)]


async def test_a_worker_that_wakes_up_late_goes_on_working(url: str, queue: JobQueue, forks: ForkServer) -> None:
    jobs = QueuedAnswerJobs(queue)
    async with start_workers(forks, url, 2, seconds=0.5) as workers:
        await jobs.ask_for_answer(1, "c")
        stopped = await find_who_began(url, 1, workers)
        stopped.send(signal.SIGSTOP)
        await until_settled(url, 1)
        stopped.send(signal.SIGCONT)
        next(worker for worker in workers if worker is not stopped).send(signal.SIGKILL)
        for entry in range(2, 6):
            await jobs.ask_for_answer(entry, f"c{entry}")
        await until_settled(url, 5)

    assert len(await run_sql(url, "SELECT 1 FROM begun WHERE entry = 1")) == 2


async def test_who_follows_a_refresh_is_told_its_end_although_the_indexer_dies(
    url: str, queue: JobQueue, forks: ForkServer
) -> None:
    async with open_refreshes(url, queue) as jobs, start_workers(forks, url, 2, seconds=1.0) as workers:
        courses = [await jobs.ask_for_refresh("one", full=True)]
        dying = await find_who_began(url, -1, workers)
        courses.append(await jobs.ask_for_refresh("one"))  # beside which the first cannot be tried again in place
        dying.send(signal.SIGKILL)
        reports = [(await follow(course))[1] for course in courses]

    assert [report.commit for report in reports] == ["one", "one"]
    assert reports[0].changed == 1  # it was a full one
