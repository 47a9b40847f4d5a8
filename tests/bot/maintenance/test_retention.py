"""Old data is deleted daily; data that is young, chosen or still to be answered is kept."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent import Database
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.maintenance.disk_usage import measure_disk_usage
from bot.maintenance.retention import FIRST_SECONDS, Retention, SweepReport, describe_sweep, run_daily_sweep
from bot.messages import IncomingMessage, Place
from bot.repositories.choice_store import ChoiceStore
from bot.repositories.library import RepositoryLibrary
from bot.storage.answer_records import SharedAnswerStore
from bot.storage.database import INBOX_FILE, open_database
from bot.storage.inbox import Inbox
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecord, TurnRecordStore
from indexer.errors import IndexerError, StorageError, StorageLocked
from tests.bot.repositories.test_library import Quiet
from tests.fakes.clock import FakeClock
from tests.fakes.parts import FakeIndex
from tests.waiting import expect

DAY = 86_400.0
PLACE = Place(platform="fake", workspace="w", channel="c", thread="1")
RECORD = TurnRecord(repository="demo", commit="0" * 40, route="fast", model=None, seconds=1.0)


def message(number: str, thread: str = "1") -> IncomingMessage:
    place = replace(PLACE, thread=thread)
    return IncomingMessage(place=place, id=number, author="ann", text="where?", kind="mention", sent_at=0.0)


class Chat:
    """The tables of the chat side in a data folder, with a clock over them."""

    def __init__(self, home: Path, database: Database, clock: FakeClock) -> None:
        self.home = home
        self.clock = clock
        self.inbox = Inbox(database, clock, "me")
        self.threads = ThreadStore(database, clock)
        self.records = TurnRecordStore(database, clock)
        self.usage = QuestionCounter(database, clock, QuestionLimits())
        self.ledger = ChoiceStore(database, clock)
        self.shared = SharedAnswerStore(database, clock)

    async def turn(self, number: str, thread: str) -> IncomingMessage:
        """Answer a question, which is then rated."""
        asked = message(number, thread)
        entry = await self.inbox.store(asked, await self.threads.enter(asked))
        assert entry is not None
        claimed = await self.inbox.claim(entry.id)
        assert claimed is not None
        await self.usage.count(asked)
        await self.records.keep(entry.run_id, entry.conversation, RECORD)
        await self.records.rate(entry.run_id, "ann", "good")
        await self.ledger.set_topic(entry.conversation, "demo")
        await self.shared.share(entry.run_id, "slack:ann", "where?", "{}")
        await self.inbox.settle(claimed, "settled")
        return asked

    async def swept(self, days: int = 90) -> SweepReport:
        return await Retention(home=self.home, days=days, clock=self.clock).sweep()

    def count(self, table: str) -> int:
        with closing(sqlite3.connect(self.home / INBOX_FILE)) as db:
            (number,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


@pytest_asyncio.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    clock = FakeClock()
    async with open_database(tmp_path / "home" / INBOX_FILE) as database:
        yield Chat(tmp_path / "home", database, clock)


@pytest.mark.parametrize(("days", "gone"), [(90, {8}), (0, {8}), (2, {8, 3})], ids=["by a week", "for ever", "by less"])
async def test_a_database_as_it_was_before_its_layout_changed_is_kept_for_a_week(
    chat: Chat, days: int, gone: set[int]
) -> None:
    copies = {age: chat.home / f"{INBOX_FILE}.layout-{age}" for age in (8, 3)}
    for age, copy in copies.items():
        copy.write_bytes(b"as it was")
        os.utime(copy, (chat.clock.now() - age * DAY,) * 2)

    assert measure_disk_usage(chat.home, None).messages >= 18
    assert (await chat.swept(days)).problems == []

    assert {age for age, copy in copies.items() if not copy.exists()} == gone


async def test_a_copy_that_cannot_be_dropped_is_named(chat: Chat) -> None:
    copy = chat.home / f"{INBOX_FILE}.layout-1"
    copy.mkdir()
    os.utime(copy, (chat.clock.now() - 30 * DAY,) * 2)

    assert [f"{copy} cannot be deleted" in problem for problem in (await chat.swept()).problems] == [True]


async def test_everything_of_an_old_turn_is_forgotten_and_nothing_of_a_young_one(chat: Chat) -> None:
    old = await chat.turn("10", "1")
    await chat.clock.advance(60 * DAY)
    young = await chat.turn("20", "2")
    await chat.clock.advance(31 * DAY)

    assert await chat.swept() == SweepReport(messages=1, threads=1, ratings=1, problems=[])

    assert await chat.inbox.find(old.key) is None
    assert await chat.inbox.find(young.key) is not None
    assert await chat.threads.find(old.place) is None
    assert await chat.threads.find(young.place) is not None
    tables = ("turns", "feedback", "topics", "shared_answers", "usage")
    assert [chat.count(table) for table in tables] == [1, 1, 1, 1, 0]


async def test_what_is_still_to_be_answered_is_never_forgotten(chat: Chat) -> None:
    asked = message("10")
    await chat.inbox.store(asked, await chat.threads.enter(asked))
    await chat.clock.advance(400 * DAY)

    assert (await chat.swept()).messages == 0
    assert await chat.inbox.find(asked.key) is not None


async def test_the_repository_that_a_channel_chose_outlives_its_threads(chat: Chat) -> None:
    await chat.threads.use(message("10"), "shop")
    await chat.clock.advance(400 * DAY)

    assert (await chat.swept()).threads == 1
    assert await chat.threads.repository(message("11", thread="2")) == "shop"


async def test_a_thread_that_was_muted_a_moment_ago_stays_muted(chat: Chat) -> None:
    await chat.threads.mute(message("10"), muted=True)

    await chat.swept()

    assert (await chat.threads.settings(message("11"))).muted


async def test_with_zero_days_everything_is_kept(chat: Chat) -> None:
    await chat.turn("10", "1")
    await chat.clock.advance(4_000 * DAY)

    assert await chat.swept(days=0) == SweepReport(problems=[])
    assert chat.count("inbox") == 1


async def test_the_message_database_shrinks(chat: Chat) -> None:
    for number in range(400):
        await chat.records.keep(f"run {number}", "c", replace(RECORD, files=("path" * 500,)))
    with closing(sqlite3.connect(chat.home / INBOX_FILE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (chat.home / INBOX_FILE).stat().st_size
    await chat.clock.advance(91 * DAY)

    await chat.swept()

    with closing(sqlite3.connect(chat.home / INBOX_FILE)) as db:
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (chat.home / INBOX_FILE).stat().st_size < before / 4


async def test_a_part_that_cannot_be_swept_keeps_no_other_from_it(chat: Chat) -> None:
    await chat.turn("10", "1")
    await chat.clock.advance(91 * DAY)
    (chat.home / "conversations.sqlite").write_bytes(b"not a database at all" * 100)

    swept = await chat.swept()

    assert swept.messages == 1
    assert ["is damaged" in problem for problem in swept.problems] == [True]


async def test_an_empty_data_folder_stays_empty(tmp_path: Path) -> None:
    swept = await Retention(home=tmp_path / "none", days=90, clock=FakeClock()).sweep()

    assert swept == SweepReport(problems=[])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("error", "problems"),
    [(StorageLocked("Another citebot is indexing."), []), (StorageError("It is damaged."), ["one: It is damaged."])],
)
async def test_all_indexes_are_swept_whatever_is_wrong_with_one(error: IndexerError, problems: list[str]) -> None:
    one, two = FakeIndex(error=error), FakeIndex()

    assert await RepositoryLibrary({"one": one, "two": two}, Quiet(), LocalRefreshJobs()).sweep() == problems
    assert (one.sweeps, two.sweeps) == (1, 1)


async def test_it_is_swept_some_minutes_after_the_start_and_daily(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock(0.0)
    times: list[float] = []

    async def sweep() -> SweepReport:
        times.append(clock.now())
        if len(times) == 2:
            raise OSError(28, "No space left on device")
        return SweepReport(conversations=1, messages=1_234, problems=("A part is damaged.",))

    with caplog.at_level(logging.INFO, "bot"):
        async with run_daily_sweep(sweep, clock):
            await clock.advance(FIRST_SECONDS - 1)
            assert times == []
            await clock.advance(1 + 2 * DAY)

    assert times == [FIRST_SECONDS, FIRST_SECONDS + DAY, FIRST_SECONDS + 2 * DAY]
    assert "Swept: forgot 1 conversation, 1,234 messages, 0 threads and 0 ratings." in caplog.text
    assert "not swept: A part is damaged." in caplog.text
    assert "No space left on device" in caplog.text


async def test_a_sweep_under_way_is_broken_off_at_the_end() -> None:
    clock, begun = FakeClock(), asyncio.Event()

    async def sweep() -> SweepReport:
        begun.set()
        await asyncio.Event().wait()
        return SweepReport()

    async with expect("a sweep under way is broken off at the end"), run_daily_sweep(sweep, clock):
        await clock.advance(FIRST_SECONDS)
        assert begun.is_set()


def test_numbers_of_one_are_said_as_such() -> None:
    assert describe_sweep(SweepReport(threads=1, ratings=2)).endswith(
        "0 conversations, 0 messages, 1 thread and 2 ratings."
    )
