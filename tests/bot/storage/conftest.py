"""Every implementation of what the chat side stores, for the contracts that each of them has to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from agent import Database
from bot.repositories.choice_store import ChoiceStore
from bot.storage.answer_records import AnswerRecordStore, ShareableAnswerStore, SharedAnswerStore
from bot.storage.database import open_database
from bot.storage.inbox import Inbox
from bot.storage.leases import Leases
from bot.storage.living_answers import LivingAnswerStore
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore
from tests.fakes.clock import FakeClock
from tests.fakes.postgres import lend_database, open_clocked_postgres
from tests.needs import name_params

LIMITS = QuestionLimits(per_minute=2, per_day=5)


@dataclass(frozen=True, kw_only=True)
class ChatStore:
    """The stores of one database, as one process has them; what is opened is opened under the name of a process."""

    database: Database
    threads: ThreadStore
    settings: ThreadStore
    records: TurnRecordStore
    answers: AnswerRecordStore
    ratings: TurnRecordStore
    limiter: QuestionCounter
    choices: ChoiceStore
    shareable: ShareableAnswerStore
    shared: SharedAnswerStore
    living: LivingAnswerStore
    open_inbox: Callable[[str], Inbox]
    open_leases: Callable[[str], Leases]


OpenStore = Callable[[], AbstractAsyncContextManager[ChatStore]]


def make_store(database: Database, clock: FakeClock) -> ChatStore:
    threads, records = ThreadStore(database, clock), TurnRecordStore(database, clock)
    return ChatStore(
        database=database,
        threads=threads,
        settings=threads,
        records=records,
        answers=AnswerRecordStore(database, clock, mask=lambda text: text.replace("hunter2", "***")),
        ratings=records,
        limiter=QuestionCounter(database, clock, LIMITS),
        choices=ChoiceStore(database, clock),
        shareable=ShareableAnswerStore(database, clock),
        shared=SharedAnswerStore(database, clock),
        living=LivingAnswerStore(database, clock),
        open_inbox=partial(Inbox, database, clock),
        open_leases=partial(Leases, database, clock=clock),
    )


@asynccontextmanager
async def begin_sqlite(folder: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    @asynccontextmanager
    async def open_store() -> AsyncIterator[ChatStore]:
        async with open_database(folder / "inbox.sqlite", lease_clock=clock.now) as database:
            yield make_store(database, clock)

    yield open_store


@asynccontextmanager
async def begin_postgres(_: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    async with lend_database() as url:

        @asynccontextmanager
        async def open_store() -> AsyncIterator[ChatStore]:
            async with open_clocked_postgres(url, clock.now) as database:
                yield make_store(database, clock)

        yield open_store


# By technology: what is there for one test, in a folder or a database that is its alone.
IMPLEMENTATIONS = {"sqlite": begin_sqlite, "postgres": begin_postgres}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000.0)


@pytest_asyncio.fixture(params=name_params(IMPLEMENTATIONS))
async def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    """Open the stores, as another process does that shares them, or the same one after a restart."""
    async with IMPLEMENTATIONS[request.param](tmp_path, clock) as opening:
        yield opening


@pytest_asyncio.fixture
async def store(open_store: OpenStore) -> AsyncIterator[ChatStore]:
    async with open_store() as opened:
        yield opened
