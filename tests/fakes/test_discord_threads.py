"""The fake Discord's threads: begun by the real discord.py and by people, archived, private, in forums."""

from __future__ import annotations

from collections.abc import AsyncIterator

import discord
import pytest

from tests.fakes.discord import FakeDiscord, Permission
from tests.fakes.discord_clients import Bot, refusal, running


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as discord:
        discord.limits.pace = 100
        yield discord


async def asked(fake: FakeDiscord, bot: Bot, channel: str, user: str) -> discord.Message:
    """A question as the client heard it."""
    fake.mention(channel, user, "where is the retry?")
    await fake.until(lambda: bot.heard)
    return bot.heard[-1]


async def test_a_thread_on_a_message_has_its_id_and_follow_ups_are_heard_in_it(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)
    async with running(fake, bot):
        question = await asked(fake, bot, channel, ada)
        thread = await question.create_thread(name="the retry")
        await thread.send("here")
        fake.message(str(thread.id), ada, "and why?")
        await fake.until(lambda: bot.heard[-1].content == "and why?")

    assert thread.id == question.id
    assert isinstance(bot.heard[-1].channel, discord.Thread)
    assert [seen.text for seen in fake.messages(str(thread.id))] == ["", "here", "and why?"]
    assert fake.seen(str(question.id)).thread == str(thread.id)
    assert [each.name for each in fake.threads_in(channel)] == ["the retry"]


async def test_a_second_thread_on_a_message_is_refused(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)
    async with running(fake, bot):
        question = await asked(fake, bot, channel, ada)
        await question.create_thread(name="one")

        assert await refusal(question.create_thread(name="two")) == 160004
        assert await refusal(question.create_thread(name="x" * 101)) == 50035


async def test_there_are_no_threads_in_threads_nor_in_direct_conversations(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    thread = fake.start_thread(channel, ada, "talk")
    bot = Bot(fake)
    async with running(fake, bot):
        for place in (thread, fake.dm_channel(ada)):
            identity = fake.mention(place, ada, "hello?")
            body = {"name": "inner", "auto_archive_duration": 1440, "rate_limit_per_user": 0}
            call = bot.http.start_thread_with_message(int(place), int(identity), **body)  # type: ignore[arg-type]

            assert await refusal(call) == 50024


async def test_active_threads_are_known_after_a_restart_and_archived_ones_are_not(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    active, archived = (fake.start_thread(channel, ada, name) for name in ("active", "archived"))
    fake.archive(archived)
    bot = Bot(fake)
    async with running(fake, bot):
        assert bot.get_channel(int(active)) is not None
        assert bot.get_channel(int(archived)) is None
        assert (await bot.fetch_channel(int(archived))).name == "archived"  # type: ignore[union-attr]


async def test_writing_brings_an_archived_thread_back_unless_it_is_locked(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    archived, locked = (fake.start_thread(channel, ada, name) for name in ("archived", "locked"))
    fake.archive(archived)
    fake.archive(locked, locked=True)
    bot = Bot(fake)
    async with running(fake, bot):
        message = await bot.place(archived).send("back")
        assert await refusal(bot.place(locked).send("no")) == 160005
        fake.archive(archived)
        assert await refusal(message.edit(content="no")) == 50083

    assert [each.data["thread_metadata"]["archived"] for each in fake.gateway.dispatched("THREAD_UPDATE")] == [
        False,
        True,
    ]


async def test_a_follow_up_in_an_archived_thread_comes_behind_its_return(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    thread = fake.start_thread(channel, ada, "old")
    fake.archive(thread)
    bot = Bot(fake)
    async with running(fake, bot):
        fake.message(thread, ada, "one more thing")
        await fake.until(lambda: bot.heard)

    assert isinstance(bot.heard[0].channel, discord.Thread)


async def test_a_private_thread_is_hidden_until_the_bot_is_mentioned_in_it(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    thread = fake.start_thread(channel, ada, "secret", private=True)
    bot = Bot(fake)
    async with running(fake, bot):
        fake.message(thread, ada, "just us")
        assert await refusal(bot.place(thread).send("hello")) == 50001
        fake.mention(thread, ada, "join us")
        await fake.until(lambda: bot.heard)
        await bot.heard[0].channel.send("hello")

    assert [message.content.split()[-1] for message in bot.heard] == ["us"]
    assert bot.heard[0].channel.type is discord.ChannelType.private_thread
    assert fake.bot_id in fake.thread(thread).thread.members


async def test_a_thread_on_no_message_is_private_by_default(fake: FakeDiscord) -> None:
    channel = fake.add_channel("general")
    bot = Bot(fake)
    async with running(fake, bot):
        place = bot.place(channel)
        private = await place.create_thread(name="private")
        public = await place.create_thread(name="public", type=discord.ChannelType.public_thread)

    assert (private.is_private(), public.is_private()) == (True, False)
    assert [seen.text for seen in fake.messages(channel)] == ["public"]


async def test_a_forum_post_is_a_thread_whose_first_message_bears_its_id(fake: FakeDiscord) -> None:
    forum, ada = fake.add_forum("help"), fake.add_user("ada")
    bot = Bot(fake)
    async with running(fake, bot):
        post = fake.post(forum, ada, "How does it retry?", f"<@{fake.bot_id}> please look")
        await fake.until(lambda: bot.heard)
        made = await bot.place(forum).create_thread(name="From the bot", content="hello")

    heard = bot.heard[0]
    assert str(heard.id) == str(heard.channel.id) == post
    assert isinstance(heard.channel, discord.Thread)
    assert isinstance(heard.channel.parent, discord.ForumChannel)
    assert heard.channel.name == "How does it retry?"
    assert made.thread.id == made.message.id
    assert [seen.text for seen in fake.messages(str(made.thread.id))] == ["hello"]


async def test_writing_in_threads_is_a_permission_of_its_own(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    thread = fake.start_thread(channel, ada, "talk")
    fake.deny(channel, fake.bot_id, Permission.SEND_MESSAGES_IN_THREADS)
    bot = Bot(fake)
    async with running(fake, bot):
        await bot.place(channel).send("fine")
        assert await refusal(bot.place(thread).send("no")) == 50013


async def test_archived_threads_are_listed(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    thread = fake.start_thread(channel, ada, "old")
    fake.archive(thread)
    bot = Bot(fake)
    async with running(fake, bot):
        found = [each.name async for each in bot.place(channel).archived_threads()]

    assert found == ["old"]


async def test_the_bot_changes_its_own_threads_only(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    theirs = fake.start_thread(channel, ada, "theirs")
    bot = Bot(fake)
    async with running(fake, bot):
        mine = await bot.place(channel).create_thread(name="mine", type=discord.ChannelType.public_thread)
        await mine.edit(name="renamed", archived=True)
        assert await refusal(bot.place(theirs).edit(name="stolen")) == 50013

    assert (fake.thread(str(mine.id)).name, fake.thread(theirs).name) == ("renamed", "theirs")
