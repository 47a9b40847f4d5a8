"""A server of the fake Discord with citebot in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.bot.discord_worlds import DiscordWorld
from tests.fakes.discord import FakeDiscord


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[DiscordWorld]:
    """Ann and Bob in a channel."""
    async with FakeDiscord() as fake, DiscordWorld(fake, tmp_path / "inbox.sqlite").running() as made:
        yield made
