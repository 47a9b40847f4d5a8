"""The connection to Discord's gateway: kept, lost, closed, and reported to the operator."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from pathlib import Path

import discord.client
import pytest
from discord.gateway import DiscordWebSocket

from bot.adapters.discord import connection
from bot.adapters.discord.adapter import DiscordAdapter
from bot.adapters.discord.connection import LONGEST_PAUSE, ReconnectBackoff
from bot.conversations.assembly import open_conversations
from bot.errors import RateLimited
from bot.storage.database import open_database
from tests.bot.discord_worlds import DiscordWorld
from tests.fakes.discord import FakeDiscord
from tests.waiting import expect, wait_until


def test_no_pause_is_longer_than_a_minute() -> None:
    pauses = ReconnectBackoff()

    assert all(0 <= pauses.delay() <= LONGEST_PAUSE for _ in range(1_000))


async def test_a_connection_changes_nothing_in_the_library_for_others(tmp_path: Path) -> None:
    before = dict(vars(discord.client))
    filters = list(logging.getLogger("discord.client").filters)
    async with FakeDiscord() as fake, DiscordWorld(fake, tmp_path / "inbox.sqlite").running():
        during = dict(vars(discord.client))
        assert logging.getLogger("discord.client").filters == filters

    assert {name for name in before.keys() | during.keys() if before.get(name) is not during.get(name)} == set()


async def test_a_connection_that_is_lost_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReconnectBackoff, "delay", lambda _: 0.01)
    async with FakeDiscord() as fake:
        async with DiscordWorld(fake, tmp_path / "inbox.sqlite").running():
            fake.drop()
            await fake.connected()

        assert len(fake.gateway.sessions) == 1


@pytest.mark.parametrize(("stray", "seconds"), [(False, 40.0), (True, 60.0)], ids=["by Discord", "by Cloudflare"])
async def test_a_limit_at_the_login_asks_to_wait(tmp_path: Path, stray: bool, seconds: float) -> None:
    async with FakeDiscord() as fake:
        fake.faults.ratelimited("get_current_user", retry_after=40.0, stray=stray)
        with pytest.raises(RateLimited) as limit:
            async with DiscordAdapter.open(DiscordWorld(fake, tmp_path / "inbox.sqlite").options, fake.clock):
                pass

    assert limit.value.retry_after == seconds


async def test_each_try_to_come_back_is_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReconnectBackoff, "delay", lambda _: 0.01)
    async with FakeDiscord() as fake, DiscordWorld(fake, tmp_path / "inbox.sqlite").running():
        fake.gateway.down = 503
        fake.drop()
        await logged(caplog)
        fake.gateway.down = None
        await fake.connected()

    assert {(each.levelno, each.exc_info) for each in caplog.records} == {(logging.WARNING, None)}
    assert caplog.messages[0] == "the gateway of Discord is away (WSServerHandshakeError); next try in 0.0 seconds"


async def test_a_first_try_in_vain_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with FakeDiscord() as fake:
        fake.gateway.down = 503
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        beginning = asyncio.create_task(world.begin())
        await logged(caplog)
        fake.gateway.down = None
        while not beginning.done():
            fake.clock.advance(1)
            await asyncio.wait({beginning}, timeout=0.05)
        beginning.result()
        await world.end()

    assert caplog.messages[0] == (
        "the gateway of Discord cannot be reached (WSServerHandshakeError); next try in 1 seconds"
    )
    assert not any(each.exc_info for each in caplog.records)


async def test_a_connection_that_ends_soon_leaves_nothing_behind(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        options = dataclasses.replace(world.options, settle_seconds=60.0)
        async with (
            open_conversations(
                world.agent, world.repositories, store=open_database(tmp_path / "i.sqlite"), policy=world.policy
            ) as core,
            core.open(),
            DiscordAdapter.open(options, fake.clock) as discord,
            discord.listen(core, world.repositories, world.policy.access),
        ):
            assert await discord.unready() == ""
            assert not discord.is_connected
        await asyncio.sleep(0)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_gateway_that_does_not_answer_a_farewell_is_left_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close(gateway: DiscordWebSocket, code: int = 4000) -> None:
        await left(gateway, code)
        await asyncio.Event().wait()

    left = DiscordWebSocket.close
    monkeypatch.setattr(DiscordWebSocket, "close", close)
    monkeypatch.setattr(connection, "FAREWELL", 0.05)
    async with FakeDiscord() as fake:
        async with DiscordWorld(fake, tmp_path / "inbox.sqlite").running():
            pass

        assert not fake.gateway.connections


async def test_a_lost_gateway_is_not_ready_until_it_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReconnectBackoff, "delay", lambda _: 0.01)
    async with FakeDiscord() as fake, DiscordWorld(fake, tmp_path / "inbox.sqlite").running() as world:
        assert world.discord is not None
        assert await world.discord.unready() == ""
        fake.gateway.down = 503
        fake.drop()
        await until_unready(world, "the gateway is not connected")
        fake.gateway.down = None
        await until_unready(world, "")


async def until_unready(world: DiscordWorld, words: str) -> None:
    """Wait until Discord's readiness says something, or nothing at all."""
    assert world.discord is not None
    async with expect("until unready"):
        while (said := await world.discord.unready()) != words and not (words and words in said):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_server_that_is_looked_through_at_the_end_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        await world.mention("where is send?")
        gate = fake.faults.hang("get_channel_messages")
        await world.begin()
        await fake.until(lambda: gate.waiting)
        await world.end()
        gate.release()
        async with world.running():
            await fake.until(lambda: [each for each in world.said() if "Answer to: where is send?" in each])

    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def logged(caplog: pytest.LogCaptureFixture) -> None:
    await wait_until(lambda: caplog.records, "caplog.records")
