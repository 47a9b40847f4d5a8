"""Thirty questions at once in Slack, within Slack's own limits: all are answered, and none stands still."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

from bot.adapters.slack.platform import Streaming
from bot.chat import ChatPolicy
from bot.usage import Limits
from tests.bot.slack_worlds import HOSTS, Mode, SlackWorld
from tests.fakes.slack import Clock, FakeSlack

QUESTIONS = 30
MOST_SILENT = 15.0  # seconds that an answer may stand still
STEP = 0.25
REST = 0.03  # real seconds in which nothing happens


@pytest.mark.parametrize(("mode", "streaming"), [("socket", "auto"), ("http", "auto"), ("http", "off")])
async def test_thirty_answers_at_once_keep_to_the_limits_and_none_stalls(
    tmp_path: Path, mode: Mode, streaming: Streaming
) -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake:
        policy = ChatPolicy(hosts=HOSTS, limits=Limits(per_minute=100), max_concurrent=QUESTIONS)
        world = SlackWorld(fake, tmp_path / "i.sqlite", mode=mode, streaming=streaming, paced=True, policy=policy)
        world.agent.gate = asyncio.Event()
        await world.begin()
        channels = [fake.add_channel(f"team-{number}", members=(world.people["ann"],)) for number in range(6)]
        asked: dict[str, float] = {}
        for number in range(QUESTIONS):
            channel = channels[number % len(channels)]
            asked[await fake.mention(channel, world.people["ann"], f"where is part {number}?")] = fake.clock.now()
        begun = await shown(world, asked, "")
        world.agent.gate.set()
        opened = fake.clock.now()
        ended = await shown(world, asked, "demo at 0123456")

        refused = [call.method for call in fake.calls if call.error == "ratelimited"]
        assert len(refused) <= QUESTIONS / 3  # where the network squeezes two calls together; they are made again
        assert max(begun[each] - at for each, at in asked.items()) <= MOST_SILENT
        assert max(at - opened for at in ended.values()) <= MOST_SILENT
        assert len(world.replies()) == QUESTIONS
        await world.end()


async def shown(world: SlackWorld, asked: dict[str, float], words: str) -> dict[str, float]:
    """Let time pass until the answer to each question shows some words; return when each did."""
    seen: dict[str, float] = defaultdict(float)
    async with asyncio.timeout(60):
        while len(seen) < len(asked):
            for reply in world.replies():
                if words in reply.text and reply.thread_ts:
                    seen.setdefault(reply.thread_ts, world.clock.now())
            await at_rest(world)
            world.fake.clock.advance(STEP)
    return seen


async def at_rest(world: SlackWorld) -> None:
    """Wait until everybody waits for time to pass: a noisy machine is not Slack's limits."""
    before, now = (-1, -1), (0, 0)
    while now != before:
        await asyncio.sleep(REST)
        before, now = now, (len(world.fake.calls), sum(each.acked for each in world.fake.deliveries.sent))
