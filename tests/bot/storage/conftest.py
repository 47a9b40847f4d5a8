"""Every implementation of what the chat side stores, for the contracts that each of them has to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from bot.ports import QuestionLimiter, Ratings, ThreadMembership, ThreadSettings, TurnRecords
from bot.storage.database import open_database
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore
from tests.fakes.clock import FakeClock

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


@asynccontextmanager
async def open_sqlite(folder: Path, clock: FakeClock) -> AsyncIterator[ChatStore]:
    async with open_database(folder / "inbox.sqlite") as database:
        threads, records = ThreadStore(database, clock), TurnRecordStore(database, clock)
        counter = QuestionCounter(database, clock, LIMITS)
        yield ChatStore(threads=threads, settings=threads, records=records, ratings=records, limiter=counter)


# By technology: a function of a folder that is this test's alone, and of the clock.
IMPLEMENTATIONS = {"sqlite": open_sqlite}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000.0)


@pytest.fixture(params=IMPLEMENTATIONS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> OpenStore:
    """Open the stores, as another process does that shares them, or the same one after a restart."""
    return lambda: IMPLEMENTATIONS[request.param](tmp_path, clock)


@pytest_asyncio.fixture
async def store(open_store: OpenStore) -> AsyncIterator[ChatStore]:
    async with open_store() as opened:
        yield opened
