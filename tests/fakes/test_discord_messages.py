"""The fake Discord's messages, written by the real discord.py and by people."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from typing import Any

import discord
import pytest

from tests.fakes.discord import FakeDiscord, Permission
from tests.fakes.discord_clients import Bot, refusal, running

QUIET = discord.AllowedMentions.none()


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as discord:
        yield discord


@pytest.fixture
async def bot(fake: FakeDiscord) -> AsyncIterator[Bot]:
    fake.limits.pace = 100
    client = Bot(fake)
    async with running(fake, client):
        yield client


async def opened(fake: FakeDiscord, bot: Bot, name: str = "general") -> tuple[str, Any]:
    """A channel, with the client aware of it."""
    channel = fake.add_channel(name)
    await fake.until(lambda: bot.get_channel(int(channel)))
    return channel, bot.place(channel)


async def test_an_answer_is_edited_and_every_version_is_remembered(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    message = await place.send("thinking")
    await message.edit(content="writing")
    await message.edit(content="done")

    [seen] = fake.answers(channel)
    assert (seen.text, seen.edits, seen.versions) == ("done", 2, ("thinking", "writing", "done"))
    assert fake.gateway.dispatched("MESSAGE_UPDATE")[-1].data["content"] == "done"


async def test_a_repeated_nonce_gives_the_first_message_again(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    first = await place.send("hello", nonce="n1")
    again = await place.send("hello again", nonce="n1")
    fake.clock.advance(fake.rules.nonce_lifetime + 1)
    later = await place.send("much later", nonce="n1")

    assert first.id == again.id != later.id
    assert [seen.text for seen in fake.messages(channel)] == ["hello", "much later"]


async def test_a_nonce_of_a_deleted_message_sends_nothing_for_a_while(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    await (await place.send("hello", nonce="n1")).delete()

    assert await refusal(place.send("hello", nonce="n1")) == 10008
    fake.clock.advance(fake.rules.nonce_lifetime + 1)
    await place.send("hello", nonce="n1")
    assert [seen.text for seen in fake.messages(channel)] == ["hello"]


async def test_a_message_that_is_read_again_bears_no_nonce(fake: FakeDiscord, bot: Bot) -> None:
    _, place = await opened(fake, bot)
    sent = await place.send("hello", nonce="n1")

    assert sent.nonce == "n1"
    assert (await place.fetch_message(sent.id)).nonce is None
    assert [each.nonce async for each in place.history()] == [None]


@pytest.mark.parametrize(
    ("content", "utf16", "code"),
    [("x" * 2000, False, 0), ("x" * 2001, False, 50035), ("😀" * 1001, False, 0), ("😀" * 1001, True, 50035)],
)
async def test_two_thousand_characters_is_the_most(
    fake: FakeDiscord, bot: Bot, content: str, utf16: bool, code: int
) -> None:
    fake.rules.counts_utf16 = utf16
    _, place = await opened(fake, bot)
    if code:
        assert await refusal(place.send(content)) == code
    else:
        assert (await place.send(content)).content == content


async def test_an_empty_message_is_refused(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    message = await place.send("  trimmed  ")

    assert await refusal(place.send("  \n ")) == 50006
    assert await refusal(message.edit(content="")) == 50006
    assert [seen.text for seen in fake.messages(channel)] == ["trimmed"]


async def test_without_allowed_mentions_everything_rings(fake: FakeDiscord, bot: Bot) -> None:
    ada, crew = fake.add_user("ada"), fake.add_role("crew", mentionable=True)
    channel, place = await opened(fake, bot)
    text = f"@everyone <@{ada}> <@&{crew}> `@here <@{ada}>`"
    await place.send(text)
    await place.send(text, allowed_mentions=QUIET)

    loud, quiet = fake.answers(channel)
    assert loud.pings == ("@everyone", f"<@&{crew}>", f"<@{ada}>")
    assert quiet.pings == quiet.mentions == ()


async def test_an_edit_rings_nobody_but_may_mention(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.add_user("ada")
    channel, place = await opened(fake, bot)
    message = await place.send("first")
    await message.edit(content=f"<@{ada}>")

    [seen] = fake.answers(channel)
    assert (seen.pings, seen.mentions) == ((), (f"<@{ada}>",))


async def test_a_reply_rings_its_author_unless_told_not_to(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.add_user("ada")
    channel, _ = await opened(fake, bot)
    fake.mention(channel, ada, "hello?")
    await fake.until(lambda: bot.heard)
    await bot.heard[0].reply("loud")
    await bot.heard[0].reply("quiet", allowed_mentions=QUIET, mention_author=False)

    loud, quiet = fake.answers(channel)
    assert (loud.pings, quiet.pings) == ((f"<@{ada}>",), ())
    assert loud.reply_to == quiet.reply_to == str(bot.heard[0].id)


async def test_a_person_rings_everyone_only_where_they_may(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.add_user("ada")
    channel, _ = await opened(fake, bot)
    loud = fake.message(channel, ada, "@everyone lunch")
    fake.deny(channel, fake.guild_id, Permission.MENTION_EVERYONE)
    quiet = fake.message(channel, ada, "@everyone lunch")
    await fake.until(lambda: len(bot.heard) == 2)

    assert [message.mention_everyone for message in bot.heard] == [True, False]
    assert (fake.seen(loud).pings, fake.seen(quiet).pings) == (("@everyone",), ())


async def test_previews_are_seen_unless_suppressed(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    await place.send("https://example.test/a")
    await place.send("https://example.test/a", suppress_embeds=True)
    await place.send("<https://example.test/a>")

    assert [seen.previews for seen in fake.answers(channel)] == [True, False, False]


async def test_a_preview_that_comes_later_is_no_edit(fake: FakeDiscord, bot: Bot) -> None:
    channel, _ = await opened(fake, bot)
    identity = fake.message(channel, fake.add_user("ada"), "https://example.test/")
    await fake.until(lambda: bot.heard)
    fake.unfurl(identity)
    await fake.until(lambda: bot.heard[0].embeds)

    assert bot.heard[0].edited_at is None
    assert fake.seen(identity).edits == 0


async def test_people_edit_and_delete_what_they_wrote(fake: FakeDiscord, bot: Bot) -> None:
    channel, _ = await opened(fake, bot)
    identity = fake.message(channel, fake.add_user("ada"), "whre?")
    await fake.until(lambda: bot.heard)
    fake.edit(identity, "where?")
    await fake.until(lambda: bot.heard[0].edited_at)
    fake.delete(identity)

    assert bot.heard[0].content == "where?"
    assert fake.messages(channel) == []
    assert await refusal(bot.place(channel).fetch_message(int(identity))) == 10008


async def test_history_comes_newest_first_and_in_pages(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    ada = fake.add_user("ada")
    for number in range(5):
        fake.message(channel, ada, str(number))
    before = int(fake.messages(channel)[3].id)

    newest = [message.content async for message in place.history(limit=2)]
    earlier = [message.content async for message in place.history(limit=2, before=discord.Object(before))]
    fake.deny(channel, fake.bot_id, Permission.READ_MESSAGE_HISTORY)
    assert (newest, earlier) == (["4", "3"], ["2", "1"])
    assert [message async for message in place.history()] == []


async def test_files_go_up_and_come_down(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    sent = await place.send("see", file=discord.File(io.BytesIO(b"traceback"), "log.txt"))
    fake.message(channel, fake.add_user("ada"), "mine", files={"mine.txt": b"theirs"})
    await fake.until(lambda: bot.heard)

    assert await sent.attachments[0].read() == b"traceback"
    assert await bot.heard[0].attachments[0].read() == b"theirs"
    assert fake.answers(channel)[0].files == ("log.txt",)
    assert fake.calls_of("create_message")[0].files == ("log.txt",)


async def test_reactions_are_given_seen_and_taken_back(fake: FakeDiscord, bot: Bot) -> None:
    _, place = await opened(fake, bot)
    ada = fake.add_user("ada")
    message = await place.send("good?")
    fake.react(str(message.id), ada, "👍")
    await message.add_reaction("👀")
    both = fake.seen(str(message.id)).reactions
    assert bot.user is not None
    await message.remove_reaction("👀", bot.user)

    assert both == {"👍": (ada,), "👀": (fake.bot_id,)}
    assert fake.seen(str(message.id)).reactions == {"👍": (ada,)}
    assert await refusal(message.add_reaction("nonsense")) == 10014


async def test_typing_shows_until_the_answer_comes(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    await place.typing()
    shown = fake.is_typing(channel)
    await place.send("here")

    assert (shown, fake.is_typing(channel)) == (True, False)


async def test_a_direct_message_is_answered_there(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.add_user("ada")
    fake.dm(ada, "hello")
    await fake.until(lambda: bot.heard)
    await bot.heard[0].channel.send("hi")

    assert isinstance(bot.heard[0].channel, discord.DMChannel)
    assert [seen.text for seen in fake.messages(fake.dm_channel(ada))] == ["hello", "hi"]
    fake.world.users[ada].takes_dms = False
    assert await refusal(bot.heard[0].channel.send("hi")) == 50007


async def test_webhooks_and_system_messages_can_be_told_from_people(fake: FakeDiscord, bot: Bot) -> None:
    channel, _ = await opened(fake, bot)
    fake.webhook(channel, "ci", f"<@{fake.bot_id}> failed")
    fake.system_message(channel, fake.add_user("ada"), 7)
    await fake.until(lambda: len(bot.heard) == 2)

    assert [message.webhook_id is not None for message in bot.heard] == [True, False]
    assert bot.heard[1].is_system()


async def test_messages_of_others_cannot_be_edited(fake: FakeDiscord, bot: Bot) -> None:
    channel, _ = await opened(fake, bot)
    fake.message(channel, fake.add_user("ada"), "mine")
    await fake.until(lambda: bot.heard)

    assert await refusal(bot.heard[0].edit(content="yours")) == 50005
    assert await refusal(bot.heard[0].delete()) == 50013


@pytest.mark.parametrize(
    ("denied", "call", "code"),
    [
        (Permission.VIEW_CHANNEL, lambda place: place.send("x"), 50001),
        (Permission.SEND_MESSAGES, lambda place: place.send("x"), 50013),
        (Permission.EMBED_LINKS, lambda place: place.send(embed=discord.Embed(title="x")), 50013),
        (Permission.ATTACH_FILES, lambda place: place.send(file=discord.File(io.BytesIO(b"x"), "x")), 50013),
        (Permission.CREATE_PUBLIC_THREADS, lambda place: place.create_thread(name="x"), 50013),
    ],
)
async def test_what_is_denied_is_refused(
    fake: FakeDiscord, bot: Bot, denied: Permission, call: Callable[[Any], Any], code: int
) -> None:
    channel, place = await opened(fake, bot)
    if denied is Permission.CREATE_PUBLIC_THREADS:
        fake.deny(channel, fake.guild_id, Permission.CREATE_PRIVATE_THREADS)
    fake.deny(channel, fake.guild_id, denied)

    assert await refusal(call(place)) == code


async def test_a_role_given_to_the_bot_reaches_it(fake: FakeDiscord, bot: Bot) -> None:
    channel, _ = await opened(fake, bot)
    guild = bot.guilds[0]
    before = guild.me.guild_permissions.manage_messages
    fake.give_role(fake.bot_id, fake.add_role("keepers", Permission.MANAGE_MESSAGES))
    fake.message(channel, fake.add_user("ada"), "take this away")
    await fake.until(lambda: bot.heard)
    await bot.heard[0].delete()

    assert (before, guild.me.guild_permissions.manage_messages) == (False, True)
    assert fake.messages(channel) == []


async def test_old_messages_bear_few_edits(fake: FakeDiscord, bot: Bot) -> None:
    _, place = await opened(fake, bot)
    message = await place.send("old")
    fake.clock.advance(3601)
    for number in range(fake.rules.old_edits):
        await message.edit(content=str(number))

    assert await refusal(message.edit(content="too many")) == 30046


async def test_buttons_and_texts_of_components_are_seen(fake: FakeDiscord, bot: Bot) -> None:
    channel, place = await opened(fake, bot)
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Stop", custom_id="stop"))
    view.add_item(discord.ui.Button(label="Source", url="https://example.test/"))
    await place.send("working", view=view)
    layout = discord.ui.LayoutView()
    layout.add_item(discord.ui.TextDisplay("a text of its own"))
    await place.send(view=layout)

    plain, rich = fake.answers(channel)
    assert plain.buttons == {"Stop": "stop", "Source": "https://example.test/"}
    assert rich.text == "a text of its own"
