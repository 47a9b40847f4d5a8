"""The way to reach one person is stored with their question, for any process, until the reply is settled."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.storage.database import open_database
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack


async def read_rows(path: Path) -> str:
    """Everything that is kept of messages and of shareable answers."""
    async with open_database(path) as database:
        rows = await database.rows("SELECT body, handles FROM inbox")
        return repr([*rows, *await database.rows("SELECT answer FROM shareable_answers")])


@pytest.mark.parametrize("is_split", [False, True], ids=["alone", "front-and-answerer"])
async def test_nothing_is_kept_of_a_response_url_once_the_answer_is_shown(tmp_path: Path, is_split: bool) -> None:
    async with FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "inbox.sqlite")
        world.is_split = is_split
        ann = world.people["ann"]
        async with world.running():
            await fake.slash("/citebot", "where is send?", channel=world.channel, user=ann)
            await fake.until(lambda: any("Answer to" in seen.text for seen in fake.ephemeral(world.channel, ann)))

        assert fake.calls_of("chat.postEphemeral") == []
    assert "/response/" not in await read_rows(tmp_path / "inbox.sqlite")


@pytest.mark.parametrize("is_split", [False, True], ids=["alone", "front-and-answerer"])
async def test_nothing_is_kept_of_an_interaction_token_once_the_answer_is_shown(tmp_path: Path, is_split: bool) -> None:
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        world.is_split = is_split
        async with world.running():
            asking = fake.slash(world.channel, world.people["ann"], "ask", question="where is send?")
            await fake.until(lambda: any("Answer to" in seen.text for seen in asking.responses))

    assert asking.token not in await read_rows(tmp_path / "inbox.sqlite")
