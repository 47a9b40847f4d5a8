"""The conversation core reports stages, outcomes, waits and load to its observer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.conversations.assembly import ChatPolicy
from bot.errors import EditRefused, PostRefused
from bot.messages import Capabilities
from bot.monitoring.observer import TurnOutcome
from tests.bot.contract import settled, until
from tests.bot.worlds import FakeWorld
from tests.fakes.answerer import FakeAnswerer
from tests.fakes.platform import ABLE, SLACK_LIKE

STREAMS = dataclasses.replace(SLACK_LIKE, rates={})


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[FakeWorld]:
    made = FakeWorld(tmp_path / "i.sqlite", policy=ChatPolicy(max_concurrent=1))
    await made.begin()
    yield made
    await made.end()


async def over(world: FakeWorld, *outcomes: TurnOutcome) -> None:
    """Wait until so much is over."""
    await until(world, lambda _: len(world.observer.outcomes) >= len(outcomes))
    assert world.observer.outcomes == list(outcomes)


@pytest.mark.parametrize("able", [ABLE, STREAMS, dataclasses.replace(ABLE, edits=False)])
async def test_each_stage_of_a_reply_is_told_once_in_order(tmp_path: Path, able: Capabilities) -> None:
    world = FakeWorld(tmp_path / "i.sqlite", able=able)
    await world.begin()
    await world.mention("where is send?")

    await over(world, "answered")
    await world.end()

    assert [stage for stage, _ in world.observer.stages] == ["sign_of_life", "first_text", "settled"]


async def test_seconds_count_from_the_arrival_of_the_question(world: FakeWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.clock.advance(7)
    world.agent.gate.set()

    await over(world, "answered")

    seconds = dict(world.observer.stages)
    assert seconds["sign_of_life"] < 1
    assert seconds["settled"] >= 7


@pytest.mark.parametrize("route", ["paused", "blocked", "failed"])
async def test_an_answer_that_is_none_is_told_as_what_it_is(world: FakeWorld, route: TurnOutcome) -> None:
    world.agent = FakeAnswerer(route=route)
    await world.end()
    await world.begin()
    await world.mention("where is send?")

    await over(world, route)


async def test_an_error_nobody_expected_is_told_as_failed(world: FakeWorld) -> None:
    world.agent.error = RuntimeError("odd")
    await world.mention("where is send?")

    await over(world, "failed")


async def test_a_place_that_takes_no_message_is_told_as_unsaid(world: FakeWorld) -> None:
    world.platform.fail("post", PostRefused("closed"), times=9)
    await world.mention("where is send?")

    await over(world, "unsaid")

    assert "settled" not in dict(world.observer.stages)


async def test_a_stopped_answer_is_told_as_stopped(world: FakeWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    await until(world, lambda said: len(said) == 1)

    await world.press("stop")

    await over(world, "stopped")


async def test_an_answer_that_takes_too_long_is_told_as_late(world: FakeWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()

    await world.clock.advance(151)

    await over(world, "late")


async def test_an_edited_question_is_told_as_superseded_and_answered(world: FakeWorld) -> None:
    world.agent.gate = asyncio.Event()
    message = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await world.edit(message, "where is receive?")
    world.agent.gate.set()

    await over(world, "superseded", "answered")


async def test_a_refused_edit_is_no_wait(world: FakeWorld) -> None:
    world.platform.fail("edit", EditRefused("gone"))
    await world.mention("where is send?")

    await settled(world, "Answer to")

    assert world.observer.limits == []


async def test_questions_in_line_are_told_beside_those_under_way(world: FakeWorld) -> None:
    world.agent.gate = asyncio.Event()
    for number in range(3):
        await world.mention(f"where is part {number}?")
        await until(world, lambda said, most=number: len(said) == most + 1)  # type: ignore[misc]

    load = world.conversations.load
    world.agent.gate.set()
    await over(world, "answered", "answered", "answered")

    assert (load.under_way, load.waiting) == (1, 2)
    assert (world.conversations.load.under_way, world.conversations.load.waiting) == (0, 0)
