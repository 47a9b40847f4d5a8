"""Tokens that Slack no longer takes while citebot runs: anyone who looks after it learns of it, and of their return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bot.adapters.slack.connection import EVERY_SECONDS
from tests.bot.slack_worlds import SlackWorld
from tests.waiting import expect


async def until_said(world: SlackWorld, words: str) -> str:
    """Let minutes pass until Slack's readiness says something, or nothing at all; return it."""
    assert world.slack is not None
    async with expect("until said"):
        while (said := await world.slack.unready()) != words and not (words and words in said):
            world.fake.clock.advance(EVERY_SECONDS)
            await asyncio.sleep(0.01)
    return said


async def asked_again(world: SlackWorld, times: int = 3) -> None:
    """Let minutes pass until Slack has been asked again and again."""
    wanted = len(world.fake.calls_of("auth.test")) + times
    async with expect("len(world.fake.calls_of('auth.test')) >= wanted"):
        while len(world.fake.calls_of("auth.test")) < wanted:
            world.fake.clock.advance(EVERY_SECONDS)
            await asyncio.sleep(0.01)


async def test_a_revoked_token_is_told_once_and_forgotten_when_it_is_back(
    world: SlackWorld, caplog: pytest.LogCaptureFixture
) -> None:
    assert await until_said(world, "") == ""
    world.fake.access.refusal = "token_revoked"
    said = await until_said(world, "token_revoked")
    await asked_again(world)

    world.fake.access.refusal = None
    await until_said(world, "")

    assert said == "Slack refused auth.test: token_revoked. Install the app again and copy the new bot token."
    assert [each.levelname for each in caplog.records if each.name.endswith("slack.connection")] == ["ERROR", "WARNING"]


async def test_a_question_under_way_is_answered_once_the_token_is_back(world: SlackWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    world.fake.access.refusal = "token_revoked"
    world.agent.gate.set()
    await until(world, lambda: world.conversations.load.under_way == 0)
    await asked_again(world)

    world.fake.access.refusal = None

    await until(world, lambda: any("Answer to: where is send?" in said for said in world.said()))


async def until(world: SlackWorld, predicate: Callable[[], object]) -> None:
    """Let time pass until something is true."""
    async with expect("predicate()"):
        while not predicate():
            world.fake.clock.advance(1)
            await asyncio.sleep(0.01)


async def test_why_no_connection_can_be_opened_is_told(world: SlackWorld) -> None:
    world.fake.socket.enabled = False
    world.fake.socket.abort()

    said = await until_said(world, "apps.connections.open")

    assert "Switch Socket Mode on" in said
    world.fake.socket.enabled = True


async def test_a_slack_that_is_away_says_nothing_of_its_tokens(world: SlackWorld) -> None:
    world.fake.faults.http("auth.test", 503, times=None)
    await asked_again(world)

    assert world.slack is not None
    assert await world.slack.unready() == ""
