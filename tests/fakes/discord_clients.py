"""The real discord.py in front of the fake Discord, for the fake's own tests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.fakes.discord import FakeDiscord

INTENTS = 37_377  # guilds, messages in servers and directly, and their content


class Bot(discord.Client):
    """A client that hears and does nothing by itself; `heard` are the messages of others."""

    def __init__(self, fake: FakeDiscord, *, intents: int = INTENTS, **options: Any) -> None:
        wanted = discord.Intents._from_value(intents)
        super().__init__(intents=wanted, guild_ready_timeout=0.01, **options)
        self.fake = fake
        self.tree = app_commands.CommandTree(self)
        self.heard: list[discord.Message] = []
        self.errors: list[BaseException] = []
        self.readies = 0
        self.resumes = 0

    async def setup_hook(self) -> None:
        if self.tree.get_commands():
            await self.tree.sync()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for nothing: no two sessions begin at a time here."""

    async def on_ready(self) -> None:
        self.readies += 1
        self.fake.changes.tell()

    async def on_resumed(self) -> None:
        self.resumes += 1
        self.fake.changes.tell()

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            self.heard.append(message)
        self.fake.changes.tell()

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        self.fake.changes.tell()

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        self.fake.changes.tell()

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        error = sys.exception()
        assert error is not None
        self.errors.append(error)
        self.fake.changes.tell()

    def place(self, channel: str) -> Any:
        """A channel or thread by its id, whatever is known of it."""
        return self.get_channel(int(channel)) or self.get_partial_messageable(int(channel))


@asynccontextmanager
async def running(fake: FakeDiscord, bot: Bot) -> AsyncIterator[asyncio.Task[None]]:
    """Run the client until it is ready, and to the end of the block; gives its task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Route, "BASE", fake.api_url)
        patch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(fake.gateway_url))
        task = asyncio.create_task(bot.start(fake.token))
        task.add_done_callback(lambda _: fake.changes.tell())
        try:
            await fake.until(lambda: bot.readies or task.done())
            if task.done():
                task.result()
            yield task
        finally:
            await bot.close()
            await asyncio.gather(task, return_exceptions=True)
    if bot.errors:
        raise bot.errors[0]


async def refusal(call: Awaitable[Any]) -> int:
    """The code of the error that a call is refused with."""
    with pytest.raises(discord.HTTPException) as refused:
        await call
    return refused.value.code
