"""A holder waits for its lease, loses it when it stalls, and gives it back when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent import Database
from bot.storage.database import open_database
from bot.storage.leases import LEASE_SECONDS, LOOK_SECONDS, Leases
from tests.fakes.clock import FakeClock
from tests.waiting import expect

NAME = "platform slack"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000_000.0)


@pytest_asyncio.fixture
async def database(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "inbox.sqlite", lease_clock=clock.now) as opened:
        yield opened


async def pass_until(clock: FakeClock, event: asyncio.Event) -> None:
    async with expect("event.is_set()"):
        while not event.is_set():
            await clock.advance(LOOK_SECONDS)
            await asyncio.sleep(0.01)


async def test_the_next_process_takes_over_as_soon_as_one_ends(database: Database, clock: FakeClock) -> None:
    first, second = Leases(database, "one", clock), Leases(database, "two", clock)
    taken, ended = asyncio.Event(), asyncio.Event()

    async def stand_by() -> None:
        async with second.hold(NAME):
            taken.set()
            await ended.wait()

    async with first.hold(NAME):
        waiting = asyncio.create_task(stand_by())
        await clock.advance(3 * LEASE_SECONDS)
        assert (first.held, taken.is_set()) == ({NAME}, False)
    began = clock.now()
    await pass_until(clock, taken)
    assert clock.now() - began <= 3 * LOOK_SECONDS
    assert (first.held, second.held) == (set(), {NAME})
    ended.set()
    await waiting


async def test_a_process_that_another_one_was_faster_than_is_told(database: Database, clock: FakeClock) -> None:
    async with Leases(database, "one", clock).hold(NAME) as lease:
        await database.write("UPDATE leases SET owner = 'two', token = token + 1")
        await pass_until(clock, lease.lost)

    assert await database.rows("SELECT owner FROM leases") == [("two",)]
