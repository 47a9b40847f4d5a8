"""The fake Discord's gateway, with the real discord.py at the other end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import discord
import pytest

from tests.fakes.discord import FakeDiscord
from tests.fakes.discord.sessions import HEARTBEAT, IDENTIFY
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
