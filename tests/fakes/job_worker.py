"""A process that works on jobs, to be stopped and killed: `python -m tests.fakes.job_worker URL SECONDS`.

It answers, for which it takes so long, and refreshes. In the table `begun` it notes what it begins, and in `settled`
what it has ended first of all, as the inbox would take it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from bot.jobs.job_queue import QueueTimes, open_job_queue
from bot.jobs.queued_answers import QueuedAnswerJobs
from bot.jobs.queued_refreshes import QueuedRefreshJobs
from indexer import Progress, RefreshReport
from tests.waiting import expect, wait_for

# Times that a test can wait for, and that a busy machine keeps.
TIMES = QueueTimes(heartbeat=0.3, stalled=3.0, sweep=0.3, poll=1.0, shutdown=5.0)
TABLES = (
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


@dataclass(frozen=True, kw_only=True)
class WorkerProcess:
    """The process, as the test has it."""

    process: asyncio.subprocess.Process

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


@asynccontextmanager
async def start_workers(url: str, count: int, *, seconds: float = 0.05) -> AsyncIterator[list[WorkerProcess]]:
    """Start processes, and wait until they work; kill what is left of them at the end."""
    async with AsyncExitStack() as stack:
        workers = []
        for _ in range(count):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.fakes.job_worker",
                url,
                str(seconds),
                cwd=Path(__file__).parents[2],
                stdout=asyncio.subprocess.PIPE,
            )
            stack.push_async_callback(_kill, process)
            workers.append(WorkerProcess(process=process))
        for worker in workers:
            assert worker.process.stdout is not None
            assert await wait_for(worker.process.stdout.readline(), "worker.process.stdout.readline()") == b"ready\n"
        yield workers


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


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
        QueuedRefreshJobs(queue).work_on_refreshes(refresh, at_once=2),
    ):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], float(sys.argv[2])))
