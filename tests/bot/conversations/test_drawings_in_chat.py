"""Drawings in Slack and Discord: a picture in the same reply, with words for those who cannot see it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from PIL import Image

from bot.access import AccessPolicy, AccessRule
from bot.conversations.assembly import ChatPolicy
from tests.bot.contract import have, settled, until
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.discord import FakeDiscord
from tests.fakes.parts import FakeIndex
from tests.fakes.slack import FakeSlack
from tests.waiting import wait_until

NAMES = ('src/"]<script>.py', "src/`x` @everyone.py", "src/\u202eevil.py", f"src/{'y' * 10_000}.py")

ChatWorld = SlackWorld | DiscordWorld


def see_pictures(world: ChatWorld) -> list[tuple[bytes, str]]:
    """What was attached, with the words for it."""
    if isinstance(world, SlackWorld):
        return [(one.content, one.alt) for one in world.fake.files.stored.values() if one.shared and one.content]
    posts = [post for channel in world.fake.world.channels for post in world.fake.world.all(channel)]
    shown = [attachment for post in posts for attachment in post.attachments]
    return [(world.fake.world.uploads[one["id"]], one.get("description", "")) for one in shown]


async def see_reply(world: ChatWorld, text: str) -> str:
    """Wait for the reply; in Slack the message of its picture may follow at once."""
    said = await until(world, lambda said: bool(said) and text in said[0])
    return said[0]


async def wait_for_picture(world: ChatWorld) -> tuple[bytes, str]:
    await wait_until(lambda: see_pictures(world), "see_pictures(world)")
    (found,) = see_pictures(world)
    return found


ON_BOTH = pytest.mark.parametrize("world", ["slack", "discord"], indirect=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChatWorld]:
    """Chat about the repository `demo`, and `secret`, which nobody may ask about here; in Slack unless a test says."""
    rules = AccessRule(repositories=("demo",)), AccessRule(repositories=("secret",), people=("nobody",))
    policy = ChatPolicy(access=AccessPolicy(rules=rules))
    inbox = tmp_path / "inbox.sqlite"
    async with AsyncExitStack() as stack:
        made: ChatWorld = (
            SlackWorld(await stack.enter_async_context(FakeSlack()), inbox, policy=policy)
            if getattr(request, "param", "slack") == "slack"
            else DiscordWorld(await stack.enter_async_context(FakeDiscord()), inbox, policy=policy)
        )
        have(made, "demo", "secret")
        find_index(made).code.paths = ["src/main.py", "src/session.py"]
        async with made.running():
            yield made


def find_index(world: ChatWorld) -> FakeIndex:
    index = world.repositories.indexes["demo"]
    assert isinstance(index, FakeIndex)
    return index


@ON_BOTH
async def test_calls_are_attached_to_their_list_with_words_for_them(world: ChatWorld) -> None:
    await world.mention("draw who calls send")

    said = await see_reply(world, "Who calls send in demo")
    picture, words = await wait_for_picture(world)

    assert picture.startswith(b"\x89PNG")
    assert "main.py calls possibly Session.send" in said
    assert words.startswith("Who calls send in demo at 0123456:")


async def test_an_architecture_is_attached_to_its_list_with_words_for_it(world: ChatWorld) -> None:
    await world.mention("draw the architecture of src")

    said = await see_reply(world, "The architecture of src/ in demo")
    picture, words = await wait_for_picture(world)

    assert Image.open(io.BytesIO(picture)).width <= 2_000
    assert "main.py imports session.py (1)" in said
    assert words == "The architecture of src/ in demo at 0123456:\n- main.py imports session.py (1)"


async def test_the_source_of_an_architecture_is_a_code_block(world: ChatWorld) -> None:
    await world.mention("draw the architecture of src as mermaid")

    (said,) = await settled(world, "graph LR")

    assert 'n0["main.py"]' in said.replace("&quot;", '"')
    assert see_pictures(world) == []


@ON_BOTH
async def test_hostile_names_are_words_in_the_reply_and_in_its_picture(world: ChatWorld) -> None:
    find_index(world).code.paths = [*NAMES, "src/session.py"]
    find_index(world).code.importers = NAMES

    await world.mention("draw the architecture of src")
    said = await see_reply(world, "The architecture of src/")
    picture, words = await wait_for_picture(world)

    assert picture.startswith(b"\x89PNG")
    assert len(words) <= 1_000
    assert len(said) < 2_000
    assert said.count("```") == 2
    assert "\u202e" not in said + words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("draw", "Write `draw who calls NAME`"),
        ("draw who calls nosuchthing", "`nosuchthing` is not defined in `demo`."),
        ("draw the architecture of scr", "There is no folder `scr` in `demo`. The nearest: `src`."),
        ("draw the architecture of nosuchfolder", "There is no folder `nosuchfolder` in `demo`. It has `src`."),
        (f"draw who calls {'x' * 1_500}", "is not defined in `demo`."),
        (f"draw the architecture of {'x' * 1_500}", "There is no folder `xxx"),
        ("draw who calls <script>`]\u202e", "is not defined in `demo`."),
        ("draw what alone calls", "Nothing to draw: What alone calls in demo at 0123456 finds no calls."),
    ],
)
async def test_what_cannot_be_drawn_is_said(world: ChatWorld, text: str, said: str) -> None:
    find_index(world).code.names.append("alone")

    await world.mention(text)

    await settled(world, said)
    assert see_pictures(world) == []


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("draw who calls send in", "secret"),
        ("draw who calls send in", "nowhere"),
        ("draw the architecture of src in", "secret"),
    ],
)
async def test_a_repository_that_one_may_not_see_is_like_one_that_is_not_there(
    world: ChatWorld, wish: str, name: str
) -> None:
    await world.mention(f"{wish} {name}")

    (reply,) = await settled(world, "There is no repository")

    assert reply.replace(name, "NAME").strip() == "There is no repository `NAME`. `repos` lists them."
    assert see_pictures(world) == []
