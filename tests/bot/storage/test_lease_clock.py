"""The clock of the machine may jump: leases in SQLite go by the time that has passed, which no setting changes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bot.clock import read_uptime
from bot.storage import database as databases
from bot.storage.database import open_database
from bot.storage.inbox import LEASE_SECONDS, Inbox
from tests.bot.chat import message
from tests.fakes.clock import FakeClock

HOUR = 3_600.0


class Machine:
    """A machine whose clock, uptime and restarts are the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot, self.wall, self.uptime = "first", 1_700_000_000.0, 50_000.0
        monkeypatch.setattr(databases, "read_uptime", lambda: (self.boot, self.uptime))
        monkeypatch.setattr(time, "time", lambda: self.wall)

    def pass_time(self, seconds: float) -> None:
        self.wall, self.uptime = self.wall + seconds, self.uptime + seconds

    def restart(self) -> None:
        self.boot, self.uptime = "second", 10.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -10 * 365 * 24 * HOUR], ids=["back", "forward", "to another decade"])
async def test_a_clock_that_jumps_neither_ends_a_lease_nor_prolongs_it(
    tmp_path: Path, machine: Machine, jump: float
) -> None:
    """Seen by a process that was there before the jump, and by one that starts after it."""
    path, clock = tmp_path / "i.sqlite", FakeClock()
    async with open_database(path) as database:
        holder, other = Inbox(database, clock, "holder"), Inbox(database, clock, "other")
        stored = await holder.store(message(), "c")
        assert stored is not None
        assert await holder.claim(stored.id) is not None

        machine.wall += jump

        async with open_database(path) as later:
            newcomer = Inbox(later, clock, "newcomer")
            for inbox in (other, newcomer):
                await inbox.take_expired()
                assert await inbox.claim(stored.id) is None
            machine.pass_time(LEASE_SECONDS + 1)
            assert await newcomer.claim(stored.id) is not None


@pytest.mark.parametrize("jump", [-10 * 365 * 24 * HOUR, 0.0], ids=["a clock that was lost", "a clock that is right"])
async def test_what_was_held_before_the_machine_was_restarted_is_free(
    tmp_path: Path, machine: Machine, jump: float
) -> None:
    path, clock = tmp_path / "i.sqlite", FakeClock()
    async with open_database(path) as database:
        holder = Inbox(database, clock, "holder")
        stored = await holder.store(message(), "c")
        assert stored is not None
        await holder.claim(stored.id)
    machine.pass_time(LEASE_SECONDS + 1)
    machine.restart()
    machine.wall += jump

    async with open_database(path) as database:
        assert await Inbox(database, clock, "later").claim(stored.id) is not None


async def test_without_an_uptime_leases_go_by_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "read_uptime", lambda: None)
    before = time.time()

    async with open_database(tmp_path / "i.sqlite") as database:
        row = await database.row("SELECT lease_clock()")

    assert row is not None
    assert before <= row[0] <= time.time()


def test_the_uptime_of_this_machine_goes_on_evenly() -> None:
    first, second = read_uptime(), read_uptime()

    if sys.platform == "linux":
        assert first is not None
        assert second is not None
        assert first[0] == second[0]
        assert first[1] <= second[1]
