"""The fake Discord's rate limits and faults, as the real discord.py meets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import discord
import pytest

from tests.fakes.discord import FakeDiscord
from tests.fakes.discord_clients import Bot, refusal, running


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as discord:
        discord.limits.pace = 50  # five calls in a tenth of a second
        yield discord


async def test_discord_py_keeps_to_the_limit_that_headers_tell(fake: FakeDiscord) -> None:
    channel = fake.add_channel("general")
    bot = Bot(fake)
    async with running(fake, bot):
        for number in range(7):
            await bot.place(channel).send(str(number))

    calls = fake.calls_of("create_message")
    assert [call.status for call in calls] == [200] * 7
    assert calls[5].at - calls[0].at >= 0.1


async def test_who_does_not_keep_to_it_is_told_to_wait(fake: FakeDiscord) -> None:
    fake.limits.pace = 1
    channel = fake.add_channel("general")
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {fake.token}"}) as session:
        url = f"{fake.api_url}/channels/{channel}/messages"
        answers = [await session.post(url, json={"content": "x"}) for _ in range(6)]
        last = await answers[-1].json()

    assert [answer.status for answer in answers] == [200] * 5 + [429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["4", "3", "2", "1", "0", "0"]
    assert 0 < last["retry_after"] <= 5
    assert "Via" in answers[-1].headers


async def test_fifty_calls_a_second_is_the_most_of_all(fake: FakeDiscord) -> None:
    fake.limits.pace = 1
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {fake.token}"}) as session:
        answers = [await session.get(f"{fake.api_url}/users/{fake.bot_id}") for _ in range(25)]
        answers += [await session.get(f"{fake.api_url}/guilds/{fake.guild_id}") for _ in range(26)]

    assert {answer.status for answer in answers[:50]} == {200}
    assert answers[-1].status == 429
    assert answers[-1].headers["X-RateLimit-Global"] == "true"


async def test_a_limit_that_no_header_tells_of_is_waited_for(fake: FakeDiscord) -> None:
    channel = fake.add_channel("general")
    fake.faults.ratelimited("create_message", times=2)
    bot = Bot(fake)
    async with running(fake, bot):
        await bot.place(channel).send("hello")

    assert [call.status for call in fake.calls_of("create_message")] == [429, 429, 200]


async def test_a_ban_by_cloudflare_is_no_limit(fake: FakeDiscord) -> None:
    channel = fake.add_channel("general")
    fake.faults.ratelimited("create_message", stray=True)
    bot = Bot(fake)
    async with running(fake, bot):
        with pytest.raises(discord.HTTPException):
            await bot.place(channel).send("hello")

    assert [call.status for call in fake.calls_of("create_message")] == [429]


async def test_too_many_refusals_lead_to_a_ban(fake: FakeDiscord) -> None:
    fake.limits.most_invalid = 3
    async with aiohttp.ClientSession(headers={"Authorization": "Bot wrong"}) as session:
        answers = [await session.get(f"{fake.api_url}/users/@me") for _ in range(4)]

    assert [answer.status for answer in answers] == [401, 401, 401, 429]
    assert "Via" not in answers[-1].headers


async def test_a_lost_answer_leaves_the_message_and_its_nonce_finds_it(fake: FakeDiscord) -> None:
    channel = fake.add_channel("general")
    fake.faults.reset("create_message", after=True)
    bot = Bot(fake)
    async with running(fake, bot):
        with pytest.raises(aiohttp.ClientError):
            await bot.place(channel).send("hello", nonce="once")
        again = await bot.place(channel).send("hello", nonce="once")

    assert [seen.id for seen in fake.messages(channel)] == [str(again.id)]


async def test_a_call_can_be_held_refused_and_fail(fake: FakeDiscord) -> None:
    channel = fake.add_channel("general")
    gate = fake.faults.hang("create_message")
    fake.faults.refuse("create_message", 50013)
    fake.faults.http("create_message", 503)
    bot = Bot(fake)
    async with running(fake, bot):
        held = asyncio.create_task(bot.place(channel).send("held"))
        await fake.until(lambda: gate.waiting)
        assert fake.messages(channel) == []
        gate.release()
        await held
        assert await refusal(bot.place(channel).send("refused")) == 50013
        with pytest.raises(discord.DiscordServerError):
            await bot.place(channel).send("failed")

    assert [seen.text for seen in fake.messages(channel)] == ["held"]
