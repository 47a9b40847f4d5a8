"""Every implementation of the jobs, for the contracts that each of them has to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio

from bot.clock import SystemClock
from bot.jobs.job_queue import JobQueue, open_job_queue
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.jobs.queued_jobs import QueuedAnswerJobs, QueuedRefreshJobs
from bot.ports import AnswerJobs, RefreshJobs
from bot.storage.database import open_postgres
from bot.storage.inbox import make_process_name
from bot.storage.leases import Leases
from tests.fakes.local_answers import LocalAnswerJobs
from tests.fakes.postgres import lend_database, make_database
from tests.needs import name_params


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """The jobs of one process."""

    answers: AnswerJobs
    refreshes: RefreshJobs


@asynccontextmanager
async def open_local() -> AsyncIterator[Jobs]:
    yield Jobs(answers=LocalAnswerJobs(), refreshes=LocalRefreshJobs())


@asynccontextmanager
async def open_queued() -> AsyncIterator[Jobs]:
    async with lend_database() as url, open_job_queue(url) as queue, open_refreshes(url, queue) as refreshes:
        yield Jobs(answers=QueuedAnswerJobs(queue), refreshes=refreshes)


@asynccontextmanager
async def open_refreshes(url: str, queue: JobQueue) -> AsyncIterator[QueuedRefreshJobs]:
    """Open the refreshes of a process of its own, over one address for the queue and maybe another for the leases."""
    async with open_postgres(url) as database:
        yield QueuedRefreshJobs(queue, Leases(database, make_process_name(), SystemClock()))


@asynccontextmanager
async def make_queue_database() -> AsyncIterator[str]:
    """Make a database with all tables but those of the queue."""
    async with make_database() as url:
        async with open_postgres(url):
            pass
        yield url


# By technology: what is there for one test.
IMPLEMENTATIONS: dict[str, Callable[[], AbstractAsyncContextManager[Jobs]]] = {
    "local": open_local,
    "postgres": open_queued,
}


@pytest_asyncio.fixture(params=name_params(IMPLEMENTATIONS))
async def jobs(request: pytest.FixtureRequest) -> AsyncIterator[Jobs]:
    """Open the jobs."""
    async with IMPLEMENTATIONS[request.param]() as opened:
        yield opened
