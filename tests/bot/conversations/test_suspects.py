"""Messages that were running when a process died are retried alone, so only the guilty one is quarantined."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.conversations.active_turns import QUARANTINE_SECONDS, Suspects
from bot.conversations.assembly import ChatPolicy
from bot.storage.database import open_database
from bot.storage.inbox import LEASE_SECONDS, Inbox
from tests.bot.chat import message
from tests.bot.contract import settled, until
from tests.bot.worlds import FakeWorld
from tests.fakes.clock import FakeClock
from tests.fakes.platform import unreachable
from tests.waiting import wait_until

GUILTY = "where is the poison?"


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[FakeWorld]:
    made = FakeWorld(tmp_path / "i.sqlite", policy=ChatPolicy(max_concurrent=8, deadline=100_000))
    made.agent.gate = asyncio.Event()
    async with made.running():
        yield made


async def ask_all(world: FakeWorld, *questions: str) -> None:
    """Ask, and wait until all of it is in progress."""
    for question in questions:
        await world.mention(question)
    for _ in questions:
        await world.agent.begun.acquire()


async def wait_for_run(world: FakeWorld) -> None:
    """Let time pass until another run begins."""

    async def has_begun() -> bool:
        await world.pass_time(1)
        return not world.agent.begun.locked()

    await wait_until(has_begun, "another run")
    await world.agent.begun.acquire()


async def die(world: FakeWorld) -> None:
    await world.crash()
    await world.begin()


def open_gate(world: FakeWorld) -> None:
    assert world.agent.gate is not None
    world.agent.gate.set()


async def test_what_was_under_way_together_is_tried_again_one_by_one(world: FakeWorld) -> None:
    await ask_all(world, "where is part 0?", "where is part 1?", "where is part 2?")
    world.agent.most_at_once = 0

    await die(world)
    await world.agent.begun.acquire()
    open_gate(world)

    await settled(world, "Answer to: where is part 0?", "Answer to: where is part 1?", "Answer to: where is part 2?")
    assert world.agent.most_at_once == 1


async def test_only_the_message_that_kills_alone_is_set_aside(
    world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    await ask_all(world, GUILTY, "where is part 1?", "where is part 2?")

    await die(world)  # all of them are suspects
    await world.agent.begun.acquire()
    with caplog.at_level(logging.ERROR, "bot"):
        await die(world)  # the first one was alone
        await world.agent.begun.acquire()
    open_gate(world)

    await settled(world, "I could not finish this one", "Answer to: where is part 1?", "Answer to: where is part 2?")
    assert world.observer.outcomes.count("set_aside") == 1
    assert "channel='C', message='1'" in caplog.text
    assert "poison" not in caplog.text


async def test_a_new_question_waits_while_a_suspect_is_tried(world: FakeWorld) -> None:
    await ask_all(world, GUILTY)
    await die(world)
    await world.agent.begun.acquire()

    await world.mention("where is part 1?")
    await world.clock.advance(10)
    assert [question for question, _, _ in world.agent.asked] == [GUILTY]
    await die(world)
    await world.agent.begun.acquire()
    open_gate(world)

    await settled(world, "I could not finish this one", "Answer to: where is part 1?")


async def test_others_wait_for_a_suspect_for_a_limited_time(world: FakeWorld) -> None:
    await ask_all(world, GUILTY)
    await die(world)
    await world.agent.begun.acquire()
    await world.mention("where is part 1?")

    await world.clock.advance(QUARANTINE_SECONDS)
    await wait_for_run(world)

    assert [question for question, _, _ in world.agent.asked] == [GUILTY, "where is part 1?"]
    open_gate(world)
    await settled(world, f"Answer to: {GUILTY}", "Answer to: where is part 1?")


async def test_two_suspects_never_think_side_by_side(world: FakeWorld) -> None:
    await ask_all(world, GUILTY, "where is part 1?")
    await die(world)
    await world.agent.begun.acquire()

    await world.mention("where is part 2?")
    await world.clock.advance(QUARANTINE_SECONDS)
    await wait_for_run(world)

    assert world.agent.asked[-1][0] == "where is part 2?"
    assert len(world.agent.resumed) == 1
    open_gate(world)
    await settled(world, f"Answer to: {GUILTY}", "Answer to: where is part 1?", "Answer to: where is part 2?")


async def test_nobody_waits_for_the_delivery_of_a_suspects_answer(world: FakeWorld) -> None:
    await ask_all(world, GUILTY)
    await die(world)
    await world.agent.begun.acquire()
    await world.mention("where is part 1?")
    world.platform.fail("edit", unreachable(), times=1_000, message="r1")

    open_gate(world)

    await until(world, lambda said: len(said) == 2 and "Answer" not in said[0] and "Answer to" in said[1])


async def test_nobody_waits_twice_for_a_suspect_whose_place_takes_no_reply(
    inboxes: tuple[Inbox, Inbox, FakeClock],
) -> None:
    _, there, clock = inboxes
    await there.take_from("here")
    suspect = await there.find(message().key)
    assert suspect is not None
    suspects, another = Suspects(clock), replace(suspect, id=99, deaths=0)
    suspects.note([suspect])
    assert not suspects.may_begin(another)
    suspects.begin(suspect)
    suspects.conclude(suspect.id)  # postponed, as its placeholder could not be posted
    await clock.advance(QUARANTINE_SECONDS)

    suspects.note([suspect, another])

    assert suspects.may_begin(another)


async def test_a_crash_during_the_delivery_of_an_answer_makes_no_suspect(world: FakeWorld, tmp_path: Path) -> None:
    await ask_all(world, GUILTY)
    world.platform.fail("edit", unreachable(), times=1_000, message="r1")
    open_gate(world)
    with closing(sqlite3.connect(tmp_path / "i.sqlite")) as database:
        await until(world, lambda _: database.execute("SELECT under_way FROM inbox").fetchall() == [(0,)])

    await die(world)
    await world.mention("where is part 1?")

    await until(world, lambda said: len(said) == 2 and "Answer" not in said[0] and "Answer to" in said[1])


async def test_a_command_is_carried_out_while_a_suspect_is_tried(world: FakeWorld) -> None:
    await ask_all(world, "where is part 1?")
    thread = next(iter(world.written))
    await die(world)
    await world.agent.begun.acquire()

    await world.mention("stop", thread=thread)

    await until(world, lambda said: "Stopped, as you asked." in said)


async def test_orderly_ends_are_held_against_nothing(world: FakeWorld) -> None:
    await world.mention("where is send?")
    for _ in range(2):
        await world.agent.begun.acquire()
        await world.end()
        await world.begin()
    open_gate(world)

    await settled(world, "Answer to: where is send?")


async def deaths(inbox: Inbox) -> int:
    """How many deaths are held against the message."""
    entry = await inbox.find(message().key)
    assert entry is not None
    return entry.deaths


@pytest_asyncio.fixture
async def inboxes(tmp_path: Path) -> AsyncIterator[tuple[Inbox, Inbox, FakeClock]]:
    """The inboxes of two processes; the first one has begun to answer a message."""
    clock = FakeClock()
    async with open_database(tmp_path / "i.sqlite", lease_clock=clock.now) as database:
        here, there = Inbox(database, clock, "here"), Inbox(database, clock, "there")
        stored = await here.store(message(), "c")
        assert stored is not None
        await here.claim(stored.id)
        yield here, there, clock


async def test_a_death_counts_once(inboxes: tuple[Inbox, Inbox, FakeClock]) -> None:
    _, there, _ = inboxes

    await there.take_from("here")
    await there.take_from("here")

    assert await deaths(there) == 1


async def test_a_lease_that_runs_out_counts_as_a_death_but_not_to_its_owner(
    inboxes: tuple[Inbox, Inbox, FakeClock],
) -> None:
    here, there, clock = inboxes
    await clock.advance(LEASE_SECONDS + 1)

    await here.take_expired()
    assert await deaths(here) == 0
    await there.take_expired()
    assert await deaths(there) == 1


async def test_a_kill_during_an_orderly_end_does_not_count(inboxes: tuple[Inbox, Inbox, FakeClock]) -> None:
    here, there, _ = inboxes
    entry = await here.find(message().key)
    assert entry is not None

    await here.excuse([entry])
    await there.take_from("here")

    assert await deaths(there) == 0


async def test_a_platform_that_is_away_does_not_count(inboxes: tuple[Inbox, Inbox, FakeClock]) -> None:
    here, there, clock = inboxes
    entry = await here.find(message().key)
    assert entry is not None

    await here.postpone(entry, 60)
    await clock.advance(61)
    await there.take_expired()

    assert await deaths(there) == 0
    assert await there.claim(entry.id) is not None


async def test_a_death_after_the_answer_was_complete_does_not_count(
    inboxes: tuple[Inbox, Inbox, FakeClock],
) -> None:
    here, there, _ = inboxes
    await there.take_from("here")
    entry = await here.find(message().key)
    assert entry is not None
    again = await here.claim(entry.id)
    assert again is not None

    assert await here.still_holds(again, is_answered=True)
    await there.take_from("here")

    assert await deaths(there) == 0


async def test_another_text_is_another_chance(inboxes: tuple[Inbox, Inbox, FakeClock]) -> None:
    _, there, _ = inboxes
    await there.take_from("here")

    revised = await there.revise(message("and in other words?"))

    assert revised is not None
    assert revised.deaths == 0
