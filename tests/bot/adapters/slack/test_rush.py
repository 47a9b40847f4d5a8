"""Thirty questions at once in Slack, within Slack's own limits: all are answered, and none stands still."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.events import AgentEvent
from agent.ports import RunPermit
from agent.questions.attachments import NOTHING_ATTACHED, Attachments
from bot.adapters.slack.platform import Streaming
from bot.conversations.assembly import ChatPolicy
from bot.storage.rate_limits import QuestionLimits
from tests.bot.slack_worlds import Mode, SlackWorld
from tests.bot.worlds import HOSTS
from tests.fakes.answerer import FakeAnswerer
from tests.fakes.parts import ANSWER, event
from tests.fakes.slack import Clock, FakeSlack
from tests.waiting import expect

QUESTIONS = 30
MOST_SILENT = 15.0  # seconds that an answer may stand still
STEP = 0.25
SECONDS = 40
HOPS = 12  # times that what is in progress may go to the database and back between two calls


class Writer(FakeAnswerer):
    """Writes a word a second, for as long as it is asked to."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def ask(
        self,
        question: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        run_id: str | None = None,
        permit: RunPermit | None = None,
        attachments: Attachments = NOTHING_ATTACHED,
    ) -> AsyncIterator[AgentEvent]:
        self.asked.append((question, thread, ", ".join(repositories) or None))
        words = [f"word{number} " for number in range(SECONDS)]
        for word in words:
            yield event("token", text=word)
            await self._clock.sleep(1)
        yield event("answer", answer=replace(ANSWER, text="".join(words), citations=()))


@pytest.mark.exhaustive
async def test_thirty_answers_that_are_written_at_once_all_keep_growing(tmp_path: Path) -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake:
        policy = ChatPolicy(hosts=HOSTS, limits=QuestionLimits(per_minute=100), max_concurrent=QUESTIONS)
        world = SlackWorld(fake, tmp_path / "i.sqlite", paced=True, policy=policy, agent=Writer(fake.clock))
        await world.begin()
        for number in range(QUESTIONS):
            channel = fake.add_channel(f"team-{number}", members=(world.people["ann"],))
            await fake.mention(channel, world.people["ann"], "where is send?")
        silences = await silences_until_settled(world)

        assert max(silences) <= MOST_SILENT
        assert not [call for call in fake.calls if call.error == "ratelimited"]
        assert {text.split("\n")[0].split()[-1] for text in world.said()} == {f"word{SECONDS - 1}"}
        await world.end()


async def silences_until_settled(world: SlackWorld) -> list[float]:
    """Let time pass until all answers are settled; return for how long each stood still at most."""
    changed: dict[str, tuple[str, float]] = {}
    silences: dict[str, float] = defaultdict(float)
    async with expect("silences until settled"):
        while True:
            now, replies = world.clock.now(), world.replies()
            for reply in replies:
                before, at = changed.get(reply.ts, ("", now))
                silences[reply.ts] = max(silences[reply.ts], now - at if "demo at" not in before else 0)
                changed[reply.ts] = (reply.text, at if reply.text == before else now)
            if len(replies) == QUESTIONS and all("demo at" in reply.text for reply in replies):
                return list(silences.values())
            await at_rest(world)
            world.fake.clock.advance(STEP * 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("mode", "streaming"), [("socket", "auto"), ("http", "off")])
async def test_thirty_answers_at_once_keep_to_the_limits_and_none_stalls(
    tmp_path: Path, mode: Mode, streaming: Streaming
) -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake:
        policy = ChatPolicy(hosts=HOSTS, limits=QuestionLimits(per_minute=100), max_concurrent=QUESTIONS)
        world = SlackWorld(fake, tmp_path / "i.sqlite", mode=mode, streaming=streaming, paced=True, policy=policy)
        world.agent.gate = asyncio.Event()
        async with world.running():
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


async def shown(world: SlackWorld, asked: dict[str, float], words: str) -> dict[str, float]:
    """Let time pass until the answer to each question shows some words; return when each did."""
    seen: dict[str, float] = defaultdict(float)
    async with expect("len(seen) >= len(asked)"):
        while len(seen) < len(asked):
            for reply in world.replies():
                if words in reply.text and reply.thread_ts:
                    seen.setdefault(reply.thread_ts, world.clock.now())
            await at_rest(world)
            world.fake.clock.advance(STEP)
    return seen


async def at_rest(world: SlackWorld) -> None:
    """Wait until everybody waits for time to pass: a noisy machine is not Slack's limits.

    What is in progress goes through the loop and the queue of the database; where that has been gone through again and
    again and nothing has come of it, there is nothing in progress.
    """
    before, now = (-1, -1), (0, 0)
    while now != before:
        for _ in range(HOPS):
            await world.conversations.check_store()
            await asyncio.to_thread(int)
        before, now = now, (len(world.fake.calls), sum(each.acked for each in world.fake.deliveries.sent))
