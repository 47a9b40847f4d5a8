"""The promises of the conversation core, kept in Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.bot.contract import CONTRACT, World
from tests.bot.discord_worlds import DiscordWorld
from tests.fakes.discord import FakeDiscord


@pytest_asyncio.fixture(params=["alone", "front-and-answerer"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with FakeDiscord() as fake:
        made = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        made.is_split = request.param != "alone"
        await made.begin()
        yield made
        await made.end()


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_in_discord(world: World, promise: Callable[[World], Awaitable[None]]) -> None:
    await promise(world)
