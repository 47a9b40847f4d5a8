"""Every implementation of what the chat side stores, for the contracts that each of them has to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from bot.ports import QuestionLimiter, Ratings, ThreadMembership, ThreadSettings, TurnRecords
from bot.storage.database import SqlDatabase, open_database
from bot.storage.postgres import open_postgres
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore
from tests.fakes.clock import FakeClock
from tests.fakes.postgres import make_database

LIMITS = QuestionLimits(per_minute=2, per_day=5)


@dataclass(frozen=True, kw_only=True)
class ChatStore:
    """The stores of one database, as one process has them."""

    threads: ThreadMembership
    settings: ThreadSettings
    records: TurnRecords
    ratings: Ratings
    limiter: QuestionLimiter


OpenStore = Callable[[], AbstractAsyncContextManager[ChatStore]]


def make_store(database: SqlDatabase, clock: FakeClock) -> ChatStore:
    threads, records = ThreadStore(database, clock), TurnRecordStore(database, clock)
    counter = QuestionCounter(database, clock, LIMITS)
    return ChatStore(threads=threads, settings=threads, records=records, ratings=records, limiter=counter)


@asynccontextmanager
async def begin_sqlite(folder: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[ChatStore]:
        async with open_database(folder / "inbox.sqlite") as database:
            yield make_store(database, clock)

    yield open_store


@asynccontextmanager
async def begin_postgres(_: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    async with make_database() as url:

        @asynccontextmanager
        async def open_store() -> AsyncIterator[ChatStore]:
            async with open_postgres(url) as database:
                yield make_store(database, clock)

        yield open_store


# By technology: what is there for one test, in a folder or a database that is its alone.
IMPLEMENTATIONS = {"sqlite": begin_sqlite, "postgres": begin_postgres}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000.0)


@pytest_asyncio.fixture(params=IMPLEMENTATIONS)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    """Open the stores, as another process does that shares them, or the same one after a restart."""
    async with IMPLEMENTATIONS[request.param](tmp_path, clock) as opening:
        yield opening


@pytest_asyncio.fixture
async def store(open_store: OpenStore) -> AsyncIterator[ChatStore]:
    async with open_store() as opened:
        yield opened
