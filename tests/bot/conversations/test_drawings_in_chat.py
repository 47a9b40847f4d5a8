"""Drawings in Slack and Discord: a picture in the same reply, with words for those who cannot see it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.bot.contract import settled
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack

LIMIT = 60.0


def see_pictures(world: SlackWorld | DiscordWorld) -> list[tuple[bytes, str]]:
    """What was attached, with the words for it."""
    if isinstance(world, SlackWorld):
        return [(one.content, one.alt) for one in world.fake.files.stored.values() if one.shared and one.content]
    posts = [post for channel in world.fake.world.channels for post in world.fake.world.all(channel)]
    shown = [attachment for post in posts for attachment in post.attachments]
    return [(world.fake.world.uploads[one["id"]], one.get("description", "")) for one in shown]


@pytest.mark.parametrize("platform", ["slack", "discord"])
async def test_a_drawing_is_attached_to_its_list_with_words_for_it(platform: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        inbox = tmp_path / "inbox.sqlite"
        world: SlackWorld | DiscordWorld = (
            SlackWorld(await stack.enter_async_context(FakeSlack()), inbox)
            if platform == "slack"
            else DiscordWorld(await stack.enter_async_context(FakeDiscord()), inbox)
        )
        await world.begin()
        await world.mention("draw who calls send")
        (said,) = await settled(world, "Who calls send in demo")
        async with asyncio.timeout(LIMIT):
            while not see_pictures(world):  # noqa: ASYNC110 - in Slack a file follows its message
                await asyncio.sleep(0.05)
        ((picture, words),) = see_pictures(world)
        await world.end()

    assert picture.startswith(b"\x89PNG")
    assert "main.py calls possibly Session.send" in said
    assert words.startswith("Who calls send in demo at 0123456:")
