"""The fake Discord's gateway, with the real discord.py at the other end."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator

import aiohttp
import discord
import pytest
import zstandard

from tests.fakes.discord import FakeDiscord
from tests.fakes.discord.sessions import HEARTBEAT, IDENTIFY, RESUME
from tests.fakes.discord_clients import INTENTS, Bot, running


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as discord:
        yield discord


async def test_a_mention_reaches_a_client_that_has_logged_in(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)
    async with running(fake, bot):
        identity = fake.mention(channel, ada, "where is the retry?")
        await fake.until(lambda: bot.heard)

    [message] = bot.heard
    assert (str(message.id), message.author.name) == (identity, "ada")
    assert isinstance(message.channel, discord.TextChannel)
    assert bot.user in message.mentions
    assert [call.name for call in fake.calls] == ["get_current_user", "get_current_application"]
    [identify] = fake.gateway.frames(IDENTIFY)
    assert identify["d"]["intents"] == INTENTS
    assert fake.gateway.frames(HEARTBEAT)


@pytest.mark.parametrize("compress", ["", "zlib-stream", "zstd-stream"])
async def test_frames_travel_as_the_client_asked(fake: FakeDiscord, compress: str) -> None:
    url = f"{fake.gateway_url}?v=10&encoding=json&compress={compress}"
    unpack = {
        "": None,
        "zlib-stream": zlib.decompressobj(),
        "zstd-stream": zstandard.ZstdDecompressor().decompressobj(),
    }
    names: list[str | None] = []
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        await socket.send_json({"op": IDENTIFY, "d": {"token": fake.token, "intents": 1}})
        while "GUILD_CREATE" not in names:
            frame, stream = await socket.receive(timeout=5), unpack[compress]
            names.append(json.loads(stream.decompress(frame.data) if stream else frame.data)["t"])

    assert names == [None, "READY", "GUILD_CREATE"]


async def test_heartbeats_are_acknowledged(fake: FakeDiscord) -> None:
    bot = Bot(fake)
    async with running(fake, bot):
        await fake.until(lambda: bot.latency < 60)

    assert fake.gateway.frames(HEARTBEAT)


async def test_a_dropped_connection_is_resumed_with_what_was_missed(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)
    async with running(fake, bot):
        fake.mention(channel, ada, "one")
        await fake.until(lambda: len(bot.heard) == 1)
        fake.drop()
        fake.mention(channel, ada, "two")
        fake.mention(channel, ada, "three")
        await fake.until(lambda: bot.resumes)
        await fake.until(lambda: len(bot.heard) == 3)

    assert [message.clean_content[-5:].split()[-1] for message in bot.heard] == ["one", "two", "three"]
    assert [connection.path for connection in fake.gateway.opened] == ["/gateway", "/resume"]
    assert len(fake.gateway.frames(IDENTIFY)) == len(fake.gateway.frames(RESUME)) == 1
    assert bot.readies == 1


async def test_the_app_comes_back_when_it_is_asked_to(fake: FakeDiscord) -> None:
    bot = Bot(fake)
    async with running(fake, bot):
        fake.gateway.reconnect()
        await fake.until(lambda: bot.resumes)

    assert len(fake.gateway.frames(RESUME)) == 1


@pytest.mark.parametrize("told", [True, False])
async def test_an_invalid_session_begins_anew_and_misses_what_happened(fake: FakeDiscord, told: bool) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)
    async with running(fake, bot):
        if told:
            fake.invalidate_session()
        else:
            fake.gateway.forget()
            fake.drop()
        fake.mention(channel, ada, "lost")
        await fake.until(lambda: bot.readies == 2)
        fake.mention(channel, ada, "found")
        await fake.until(lambda: bot.heard)

    assert [message.content.split()[-1] for message in bot.heard] == ["found"]
    assert len(fake.gateway.frames(IDENTIFY)) == 2


async def test_a_session_dies_that_was_left_too_long(fake: FakeDiscord) -> None:
    bot = Bot(fake)
    async with running(fake, bot):
        fake.drop()
        fake.clock.advance(fake.rules.dead_after + 1)
        await fake.until(lambda: bot.readies == 2)

    assert bot.resumes == 0


async def test_a_silent_line_is_given_up_and_resumed(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake, heartbeat_timeout=0.2)
    async with running(fake, bot):
        fake.gateway.silence()
        fake.mention(channel, ada, "anyone?")
        await fake.until(lambda: bot.heard)

    assert bot.resumes >= 1


async def test_a_wrong_token_is_refused_at_login(fake: FakeDiscord) -> None:
    fake.rest.token = "another"
    bot = Bot(fake)
    with pytest.raises(discord.LoginFailure):
        async with running(fake, bot):
            pass


async def test_a_token_taken_back_ends_the_connection(fake: FakeDiscord) -> None:
    bot = Bot(fake)
    with pytest.raises(discord.ConnectionClosed) as closed:
        async with running(fake, bot) as task:
            fake.gateway.close_with(4004)
            await task

    assert closed.value.code == 4004


async def test_an_intent_that_is_not_switched_on_is_refused(fake: FakeDiscord) -> None:
    fake.portal.privileged.clear()
    with pytest.raises(discord.PrivilegedIntentsRequired):
        async with running(fake, Bot(fake)):
            pass


async def test_an_unknown_intent_is_refused(fake: FakeDiscord) -> None:
    url = f"{fake.gateway_url}?v=10"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        await socket.send_json({"op": IDENTIFY, "d": {"token": fake.token, "intents": 1 << 30}})
        await socket.receive(timeout=5)
        closed = await socket.receive(timeout=5)

    assert closed.data == 4013


async def test_without_the_content_intent_only_what_concerns_the_bot_can_be_read(fake: FakeDiscord) -> None:
    fake.portal.privileged.clear()
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake, intents=INTENTS & ~(1 << 15))
    async with running(fake, bot):
        secret = fake.message(channel, ada, "not for you")
        fake.mention(channel, ada, "for you")
        fake.dm(ada, "for you, too")
        await fake.until(lambda: len(bot.heard) == 3)
        read = await bot.place(channel).fetch_message(int(secret))

    assert [message.content for message in bot.heard] == ["", f"<@{fake.bot_id}> for you", "for you, too"]
    assert read.content == ""


async def test_a_client_hears_nothing_from_where_it_may_not_look(fake: FakeDiscord) -> None:
    ada = fake.add_user("ada")
    closed, open_ = fake.add_channel("closed", bot=False), fake.add_channel("open")
    bot = Bot(fake)
    async with running(fake, bot):
        fake.mention(closed, ada, "hidden")
        fake.mention(open_, ada, "seen")
        await fake.until(lambda: bot.heard)

    assert [message.content.split()[-1] for message in bot.heard] == ["seen"]


async def test_a_gateway_that_is_down_refuses_connections(fake: FakeDiscord) -> None:
    fake.gateway.down = 503
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(fake.gateway_url)

    assert refused.value.status == 503


async def test_members_come_by_id_and_by_name(fake: FakeDiscord) -> None:
    ada, grace = fake.add_user("ada"), fake.add_user("grace")
    bot = Bot(fake)
    async with running(fake, bot):
        guild = bot.guilds[0]
        by_id = await guild.query_members(user_ids=[int(ada)])
        by_name = await guild.query_members("gr")

    assert [[str(member.id) for member in found] for found in (by_id, by_name)] == [[ada], [grace]]


async def test_servers_come_and_go(fake: FakeDiscord) -> None:
    bot = Bot(fake)
    async with running(fake, bot):
        other = fake.add_guild("other")
        await fake.until(lambda: fake.gateway.dispatched("GUILD_CREATE")[1:])
        channel = fake.add_channel("there", guild=other)
        fake.mention(channel, fake.add_user("ada", guild=other), "hello")
        await fake.until(lambda: bot.heard)
        fake.remove_bot(other)
        with pytest.raises(discord.NotFound):
            await bot.fetch_channel(int(channel))

    assert bot.heard[0].guild is not None
    assert bot.heard[0].guild.name == "other"


async def test_twenty_mentions_at_once_are_all_heard_and_answered(fake: FakeDiscord) -> None:
    fake.limits.enabled = False
    ada, channels = fake.add_user("ada"), [fake.add_channel(f"channel-{number}") for number in range(20)]
    bot = Bot(fake)
    async with running(fake, bot):
        for channel in channels:
            fake.mention(channel, ada, "where?")
        await fake.until(lambda: len(bot.heard) == 20)
        threads = await asyncio.gather(*(message.create_thread(name="where?") for message in bot.heard))
        await asyncio.gather(*(thread.send("here") for thread in threads))

    assert [fake.answers(each.id)[-1].text for channel in channels for each in fake.threads_in(channel)] == [
        "here"
    ] * 20
