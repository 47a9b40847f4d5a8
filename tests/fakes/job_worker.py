"""A process that works on jobs, to be stopped and killed.

It answers, for which it takes so long, and refreshes. In the table `ready` it notes that it works, in `begun` what it
begins, and in `settled` what it has ended first of all, as the inbox would take it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from bot.clock import SystemClock
from bot.jobs.job_queue import QueueTimes, open_job_queue
from bot.jobs.queued_jobs import QueuedAnswerJobs, QueuedRefreshJobs
from bot.storage.database import open_postgres
from bot.storage.leases import Leases
from indexer import Progress, RefreshReport
from tests.forks import Fork, ForkServer
from tests.waiting import expect

# Times that a test can wait for, and that a busy machine keeps.
TIMES = QueueTimes(heartbeat=0.3, stalled=3.0, sweep=0.3, poll=1.0, shutdown=5.0)
TABLES = (
    "CREATE TABLE ready (pid BIGINT)",
    "CREATE TABLE begun (id BIGSERIAL, entry BIGINT, pid BIGINT, at TIMESTAMPTZ DEFAULT clock_timestamp())",
    "CREATE TABLE settled (id BIGSERIAL, entry BIGINT PRIMARY KEY, at TIMESTAMPTZ DEFAULT clock_timestamp())",
)


async def run_sql(url: str, sql: str) -> list[tuple[Any, ...]]:
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(sql)
        return [tuple(row) for row in await cursor.fetchall()] if cursor.description else []


async def until_rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Wait until a query returns something."""
    async with expect("until rows"):
        while not (found := await run_sql(url, sql)):  # noqa: ASYNC110 - a table tells nobody that it changed
            await asyncio.sleep(0.05)
    return found


@asynccontextmanager
async def start_workers(forks: ForkServer, url: str, count: int, *, seconds: float = 0.05) -> AsyncIterator[list[Fork]]:
    """Start processes, and wait until they work; kill what is left of them at the end."""
    workers = [await asyncio.to_thread(forks.start, work_on_jobs, url, seconds) for _ in range(count)]
    try:
        await until_rows(url, f"SELECT 1 FROM ready HAVING count(*) >= {count}")
        yield workers
    finally:
        for worker in workers:
            await worker.end(signal.SIGKILL)


async def work(url: str, seconds: float) -> None:
    """Work until ended."""

    async def answer(entry_id: int) -> None:
        await notes.execute("INSERT INTO begun (entry, pid) VALUES (%s, %s)", (entry_id, os.getpid()))
        await asyncio.sleep(seconds)
        await notes.execute("INSERT INTO settled (entry) VALUES (%s) ON CONFLICT DO NOTHING", (entry_id,))

    async def refresh(repository: str, full: bool, show: Callable[[Progress], None]) -> RefreshReport:
        await notes.execute("INSERT INTO begun (entry, pid) VALUES (-1, %s)", (os.getpid(),))
        show(Progress(stage="parsing", done=1, total=2))
        await asyncio.sleep(seconds)
        return RefreshReport(
            commit=repository, previous=None, changed=int(full), removed=0, files=1, chunks=1, seconds=0
        )

    async with (
        await AsyncConnection.connect(url, autocommit=True) as notes,
        open_job_queue(url, times=TIMES) as queue,
        QueuedAnswerJobs(queue).work_on_answers(answer, at_once=4),
        open_postgres(url) as database,
        QueuedRefreshJobs(queue, Leases(database, f"worker {os.getpid()}", SystemClock())).work_on_refreshes(
            refresh, at_once=2
        ),
    ):
        await notes.execute("INSERT INTO ready VALUES (%s)", (os.getpid(),))
        await asyncio.Event().wait()


def work_on_jobs(url: str, seconds: float) -> None:
    """Work in this process until it is ended."""
    asyncio.run(work(url, seconds))
