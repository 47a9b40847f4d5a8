"""Manners in a channel: answering mentions alone, follow-ups as well, or every question of a help channel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from agent.answers.places import FRAME
from bot.access import Manners, find_manners
from bot.conversations.assembly import ChatPolicy
from bot.conversations.dispatcher import is_question
from bot.messages import Place
from bot.storage.database import open_database
from tests.bot.contract import settled
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.slack_worlds import SlackWorld
from tests.bot.worlds import HOSTS
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack
from tests.waiting import wait_until

World = SlackWorld | DiscordWorld
Opening = Callable[[Path, Manners], AbstractAsyncContextManager[World]]


@asynccontextmanager
async def in_slack(path: Path, manners: Manners) -> AsyncIterator[World]:
    known: dict[str, Manners] = {}
    policy = ChatPolicy(hosts=HOSTS, manners=known)
    async with FakeSlack() as fake:
        world = SlackWorld(fake, path / "i.sqlite", policy=policy)
        known[f"slack:{world.channel}"] = manners
        async with world.running():
            yield world


@asynccontextmanager
async def in_discord(path: Path, manners: Manners) -> AsyncIterator[World]:
    known: dict[str, Manners] = {}
    policy = ChatPolicy(hosts=HOSTS, manners=known)
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, path / "i.sqlite", policy=policy)
        known[world.channel] = manners
        async with world.running():
            yield world


BOTH = pytest.mark.parametrize("opening", [in_slack, in_discord], ids=["slack", "discord"])


async def say(world: World, text: str, author: str = "ann") -> str:
    """Write in the channel, naming nobody; return the message's id."""
    if isinstance(world, SlackWorld):
        return await world.fake.message(world.channel, world.people[author], text)
    return world.fake.message(world.channel, world.people[author], text)


@BOTH
async def test_every_question_of_a_help_channel_is_answered_in_its_thread(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path, "every question") as world:
        question = await say(world, "where is send?")
        await settled(world, "Answer to: where is send?")
        await world.follow_up("and who calls it?", thread=question)
        await settled(world, "where is send?", "who calls it?")
        if isinstance(world, SlackWorld):
            assert {each.thread_ts for each in world.replies()} == {question}
        else:
            assert {each.channel for each in world.replies()} == {question}


async def test_each_new_post_of_a_forum_is_answered_with_its_title(tmp_path: Path) -> None:
    manners: dict[str, Manners] = {}
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "i.sqlite", policy=ChatPolicy(hosts=HOSTS, manners=manners))
        forum = fake.add_forum("help")
        manners[forum] = "every question"
        async with world.running():
            fake.post(forum, world.people["ann"], "Sending fails", "Why does it stop?")
            await settled(world, "Answer to: Sending fails")


async def test_a_process_that_lost_a_message_in_the_end_forgets_nothing_of_its_conversation(tmp_path: Path) -> None:
    async with in_slack(tmp_path, "every question") as world, open_database(tmp_path / "i.sqlite") as database:
        await database.write(
            "CREATE TRIGGER taken BEFORE UPDATE OF state ON inbox WHEN new.state = 'closed' "
            "BEGIN SELECT RAISE(IGNORE); END"
        )
        world.agent.found = False
        await say(world, "where is the coffee machine?")
        await world.agent.begun.acquire()
        await wait_until(lambda: not world.conversations.turns.list_active(), "no turn is active")
        assert world.agent.forgotten == []
        await database.write("DROP TRIGGER taken")


@BOTH
async def test_nothing_is_said_where_nothing_was_found(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path, "every question") as world:
        world.agent.found = False
        question = await say(world, "where is the coffee machine?")
        await world.agent.begun.acquire()
        await wait_until(lambda: not world.conversations.turns.list_active(), "no turn is active")
        world.agent.found = True
        await world.follow_up("does anybody know?", thread=question)
        await world.mention("where is send?")
        await settled(world, "Answer to: where is send?")

        assert len(world.agent.asked) == 2
        assert world.agent.forgotten == [world.agent.asked[0][1]]
        if isinstance(world, DiscordWorld):
            assert question not in world.fake.world.channels


async def test_places_for_what_names_no_code_are_not_posted_in_a_help_channel(tmp_path: Path) -> None:
    async with in_slack(tmp_path, "every question") as world:
        await say(world, f"what time is standup? {FRAME}")  # the answer repeats what is asked
        await world.agent.begun.acquire()
        await wait_until(lambda: not world.conversations.turns.list_active(), "no turn is active")
        await say(world, "where is parse_date?")

        await settled(world, "Answer to: where is parse_date?")


async def test_talk_in_a_help_channel_is_left_to_people(tmp_path: Path) -> None:
    async with in_slack(tmp_path, "every question") as world:
        for text in (
            "good morning all",
            "the build is red",
            "I'll look tomorrow",
            "see https://a.example/?q=1",
            "what time is it?",
        ):
            await say(world, text)
        await say(world, f"<@{world.people['bob']}> where is receive?")
        await say(world, "where is send?")
        await settled(world, "Answer to: where is send?")
        assert len(world.agent.asked) == 1


async def test_an_error_in_a_help_channel_stays_between_people(tmp_path: Path) -> None:
    async with in_slack(tmp_path, "every question") as world:
        world.agent.error = IndexError("list index out of range")
        await say(world, "where is receive?")
        await world.agent.begun.acquire()
        world.agent.error = None
        await say(world, "where is send?")
        await settled(world, "Answer to: where is send?")


async def test_a_channel_without_a_table_is_answered_when_citebot_is_named(tmp_path: Path) -> None:
    async with in_slack(tmp_path, "follow") as world:
        await say(world, "where is receive?")
        await world.mention("where is send?")
        await settled(world, "Answer to: where is send?")


async def test_where_mentions_alone_are_answered_a_follow_up_is_not(tmp_path: Path) -> None:
    async with in_slack(tmp_path, "mentions") as world:
        thread = await world.mention("where is send?")
        await settled(world, "Answer to")
        await world.follow_up("where is receive?", thread=thread)
        await world.mention("and who calls it?", thread=thread)
        await settled(world, "where is send?", "who calls it?")


@pytest.mark.parametrize(
    "text", ["where is send", "Any idea why it fails?", "KeyError: 'x'", "¿dónde está?", "wo ist das"]
)
def test_questions_and_errors_are_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["The build is red.", "see `a ? b : c`", "https://a.example/?q=1", "Whatever works."])
def test_statements_are_no_questions(text: str) -> None:
    assert not is_question(text)


def test_a_channel_is_named_with_its_platform_or_without() -> None:
    place = Place(platform="slack", workspace="T", channel="C1")
    assert find_manners({"slack:C1": "mentions", "C1": "every question"}, place) == "mentions"
    assert find_manners({"C1": "every question"}, place) == "every question"
    assert find_manners({"discord:C1": "mentions"}, place) == "follow"
