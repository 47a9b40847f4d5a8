"""The promises that a transport can break, kept in Discord."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.contract import BY_TRANSPORT, Promise
from tests.bot.discord_worlds import DiscordWorld
from tests.fakes.discord import FakeDiscord


@pytest.mark.parametrize("promise", BY_TRANSPORT, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_in_discord(promise: Promise, tmp_path: Path) -> None:
    async with FakeDiscord() as fake, DiscordWorld(fake, tmp_path / "inbox.sqlite").running() as world:
        await promise(world)
