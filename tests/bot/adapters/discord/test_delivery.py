"""Discord's events are each handled once, through drops, resumes and restarts; unasked ones are ignored."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent.ports import Answer
from bot.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from bot.adapters.discord.listener import MAX_MESSAGES
from bot.adapters.inbound import deliver_with_retry
from bot.errors import InboxError, PlatformUnreachable, SettingsError
from tests.bot.contract import settled, until
from tests.bot.discord_worlds import DiscordWorld
from tests.fakes.answerer import FakeAnswerer
from tests.fakes.clock import FakeClock
from tests.fakes.discord import FakeDiscord, Kind
from tests.waiting import expect, wait_until


async def test_twenty_mentions_at_once_get_twenty_answers_in_threads(tmp_path: Path) -> None:
    async with FakeDiscord() as fake, DiscordWorld(fake, tmp_path / "inbox.sqlite", paced=True).running() as world:
        asked = [await world.mention(f"where is part{number}?", author=f"{'ann bob'.split()[number % 2]}")
                 for number in range(20)]  # fmt: skip
        async with expect("fake.until(lambda: sum('Answer to' in said for said in world.said()..."):
            await fake.until(lambda: sum("Answer to" in said for said in world.said()) == 20, within=20)
        threads = [[seen.text for seen in fake.answers(thread)] for thread in asked]

    assert [len(texts) for texts in threads] == [1] * 20
    assert all(f"part{number}?" in texts[0] for number, texts in enumerate(threads))
    assert not [call for call in fake.calls if call.status == 429]


async def test_a_message_that_is_forwarded_to_the_bot_is_a_question(world: DiscordWorld) -> None:
    channel, bob = world._find_channel(""), world.people["bob"]
    original = world.fake.message(channel, bob, "ValueError: soon", files={"app.log": b"KeyError: 'cart'"})
    world.fake.forward(original, world.people["ann"])
    await until(world, lambda said: any("Answer to:" in text for text in said))
    texts = [one.text for one in world.agent.attached[-1].texts]
    assert texts == ["ValueError: soon", "KeyError: 'cart'"]


async def test_the_message_that_somebody_replies_to_is_read_with_the_question(world: DiscordWorld) -> None:
    channel, bob = world._find_channel(""), world.people["bob"]
    log = world.fake.message(channel, bob, "KeyError: 'cart' since noon")
    world.fake.mention(channel, world.people["ann"], "why?", reply_to=log)
    await settled(world, "Answer to: why?")
    assert [one.text for one in world.agent.attached[0].texts] == ["KeyError: 'cart' since noon"]


@pytest.mark.parametrize("resumable", [True, False])
async def test_a_gateway_that_drops_in_mid_answer_loses_and_doubles_nothing(
    world: DiscordWorld, resumable: bool
) -> None:
    world.agent.gate = asyncio.Event()
    thread = await world.mention("where is send?")
    await world.agent.begun.acquire()
    sessions = len(world.fake.gateway.sessions)
    if resumable:
        world.fake.drop()
        await world.fake.until(lambda: world.fake.gateway.sessions[-1].resumed)
    else:
        world.fake.invalidate_session()
        await world.fake.until(lambda: len(world.fake.gateway.sessions) > sessions)
    world.agent.gate.set()
    await settled(world, "Answer to: where is send?")
    await world.fake.connected()
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "where is send?", "who calls it?")


async def test_what_is_written_while_the_gateway_is_lost_is_answered_after_a_resume(world: DiscordWorld) -> None:
    world.fake.gateway.down = 503
    world.fake.drop()
    await world.mention("where is send?")
    world.fake.gateway.down = None
    await settled(world, "Answer to: where is send?")


async def test_what_is_written_while_no_session_goes_on_is_looked_for(world: DiscordWorld) -> None:
    thread = await world.mention("where is send?")
    await world.direct("where is it tested?")
    await until(world, lambda said: sum("Answer to" in each for each in said) == 2)
    world.fake.gateway.down = 503
    world.fake.drop()
    world.fake.gateway.forget()
    await world.follow_up("and who calls it?", thread=thread)
    await world.direct("and why?")
    world.fake.gateway.down = None
    said = await until(world, lambda said: sum("Answer to" in each for each in said) == 4)

    assert sum("who calls it?" in each for each in said) == sum("and why?" in each for each in said) == 1


async def test_a_session_that_is_lost_before_anything_was_heard_loses_nothing(world: DiscordWorld) -> None:
    world.fake.gateway.down = 503
    world.fake.drop()
    world.fake.gateway.forget()
    await world.mention("where is send?")
    world.fake.gateway.down = None
    await settled(world, "Answer to: where is send?")


async def test_a_mention_while_citebot_was_not_running_is_answered_once(world: DiscordWorld) -> None:
    await world.mention("where is send?")
    await settled(world, "where is send?")
    await world.end()
    thread = await world.mention("where is receive?")
    await world.follow_up("to nobody", thread="99")
    await world.begin()
    await settled(world, "where is send?", "where is receive?")
    await world.end()
    await world.begin()
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "where is send?", "where is receive?", "who calls it?")


async def test_the_newest_of_a_busy_channel_is_looked_for_after_a_start(world: DiscordWorld) -> None:
    await world.end()
    for number in range(MAX_MESSAGES):
        world.fake.message(world.channel, world.people["ann"], f"lunch at {number}?")
    await world.mention("where is send?")
    await world.begin()
    await settled(world, "where is send?")


async def test_what_is_written_directly_while_citebot_was_not_running_is_answered_once(world: DiscordWorld) -> None:
    await world.direct("where is send?")
    await settled(world, "where is send?")
    await world.end()
    await world.direct("and who calls it?")
    for _ in range(2):
        async with world.running():
            await settled(world, "where is send?", "who calls it?")
    await world.begin()
    await world.direct("and why?")
    await settled(world, "where is send?", "who calls it?", "and why?")


async def test_a_mention_of_long_ago_is_left(world: DiscordWorld) -> None:
    await world.end()
    await world.mention("where is send?")
    world.fake.clock.advance(1_000)
    await world.begin()
    await world.mention("where is receive?")
    await settled(world, "where is receive?")


async def test_after_a_restart_an_old_thread_goes_on(world: DiscordWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "where is send?")
    world.fake.archive(thread)
    await world.end()
    await world.begin()
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "where is send?", "who calls it?")

    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1
    assert [seen.channel for seen in world.replies()] == [thread, thread]


async def test_a_message_in_a_thread_that_discord_has_not_told_of_is_heard(world: DiscordWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "where is send?")
    world.fake.archive(thread)
    await world.end()
    await world.begin()
    message = world.fake.message(thread, world.people["ann"], "and who calls it?")
    world.fake.edit(message, "and who tests it?")
    await settled(world, "where is send?", "who tests it?")
    world.fake.delete(message)
    await settled(world, "where is send?")


async def test_a_crash_before_the_thread_began_is_made_good(world: DiscordWorld) -> None:
    gate = world.fake.faults.hang("start_thread_from_message")
    await world.mention("where is send?")
    await world.fake.until(lambda: gate.waiting)
    await world.crash()
    gate.release()
    await world.begin()
    await settled(world, "Answer to: where is send?")

    assert [thread.name for thread in world.fake.threads_in(world.channel)] == ["where is send?"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", range(3))
async def test_a_kill_at_any_call_leaves_one_whole_answer(world: DiscordWorld, call: int, after: bool) -> None:
    gate = world.fake.faults.hang("*", skip=call, after=after)
    await world.mention("where is send?")
    await world.fake.until(lambda: gate.waiting)
    await world.crash()
    world.fake.faults.clear()
    await world.begin()
    await settled(world, "Answer to: where is send?")

    assert len(world.fake.threads_in(world.channel)) == 1


async def test_bots_webhooks_and_announcements_are_not_answered(world: DiscordWorld) -> None:
    robot = world.fake.add_user("robot", is_bot=True)
    world.fake.mention(world.channel, robot, "where is send?")
    world.fake.webhook(world.channel, "deploys", f"<@{world.fake.bot_id}> where is send?")
    world.fake.message(world.channel, world.fake.owner, "@everyone where is send?")
    world.fake.message(world.channel, world.people["ann"], "where is send?")
    world.fake.system_message(world.channel, world.people["ann"], 7)
    await world.mention("where is receive?")
    await settled(world, "where is receive?")


async def test_a_mention_of_the_bots_role_is_a_mention(world: DiscordWorld) -> None:
    world.fake.message(world.channel, world.people["ann"], f"<@&{world.fake.bot_role}> where is send?")
    await settled(world, "Answer to: where is send?")


async def test_a_reply_to_somebody_else_is_theirs(world: DiscordWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    world.fake.reply(world.fake.webhook(thread, "builds", "It fails."), world.people["ann"], "again?")
    await world.mention("and who calls it?", thread=thread)
    await settled(world, "where is send?", "who calls it?")


async def test_a_thread_of_people_is_read_without_who_they_are(world: DiscordWorld) -> None:
    ann, bob = world.people["ann"], world.people["bob"]
    thread = world.fake.start_thread(world.channel, bob, "build")
    world.fake.message(thread, bob, f"load_order fails, ask <@{ann}>")
    await world.mention("any idea?", thread=thread)
    await settled(world, "Answer to: any idea?")
    ((question, _, _),) = world.agent.asked
    assert "> person 1: load_order fails, ask @Ann" in question
    assert not [name for name in (ann, bob) if name in question]


async def test_a_preview_is_no_edit(world: DiscordWorld) -> None:
    message = await world.mention("where is https://example.com used?")
    await settled(world, "Answer to")
    world.fake.unfurl(message)
    await world.direct("where is send?")
    await settled(world, "used?", "where is send?")

    assert len(world.agent.asked) == 2


async def test_an_edit_that_is_told_of_again_is_answered_once(world: DiscordWorld) -> None:
    message = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.edit(message, "where is receive?")
    await settled(world, "receive")
    world.fake.unfurl(message)
    await world.direct("where is send?")
    await settled(world, "receive", "where is send?")

    assert len(world.agent.asked) == 3


async def test_a_mention_that_an_edit_adds_is_answered(world: DiscordWorld) -> None:
    message = world.fake.message(world.channel, world.people["ann"], "where is send?")
    await world.edit(message, "where is send?")
    await settled(world, "Answer to: where is send?")


async def test_a_thread_of_people_is_read_and_answered_in(world: DiscordWorld) -> None:
    thread = world.fake.start_thread(world.channel, world.people["bob"], "build", private=True)
    world.fake.message(thread, world.people["bob"], "The build fails in send.")
    world.fake.add_to_thread(thread, world.people["ann"])
    world.fake.add_to_thread(thread, world.fake.bot_id)
    await world.mention("where is that?", thread=thread)
    await settled(world, "Answer to: where is that?")

    assert "> person 1: The build fails in send." in world.agent.asked[0][0]
    assert [seen.channel for seen in world.replies()] == [thread]


async def test_a_post_of_a_forum_is_its_own_thread_and_its_title_is_read(world: DiscordWorld) -> None:
    forum = world.fake.add_forum("help")
    world.fake.post(forum, world.people["ann"], "Sending fails", f"<@{world.fake.bot_id}> where is it?")
    await settled(world, "Answer to: Sending fails")
    other = world.fake.post(forum, world.people["ann"], "Receiving fails", "It stops.")
    await world.mention("where is it?", thread=other)
    await settled(world, "Sending fails", "where is it?")

    assert "Receiving fails" in world.agent.asked[1][0]


async def test_without_message_content_a_thread_needs_a_mention(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        fake.portal.privileged.clear()
        async with DiscordWorld(fake, tmp_path / "inbox.sqlite", message_content=False).running() as world:
            thread = await world.mention("where is send?")
            await settled(world, "where is send?")
            await world.follow_up("and who calls it?", thread=thread)
            await world.mention("and who tests it?", thread=thread)
            await settled(world, "where is send?", "who tests it?")
            await world.direct("where is receive?")
            await settled(world, "where is send?", "who tests it?", "receive")


async def test_everyone_in_a_question_rings_nobody(world: DiscordWorld) -> None:
    world.fake.message(
        world.channel, world.fake.owner,
        f"<@{world.fake.bot_id}> tell @everyone, @here and <@{world.people['bob']}>: `@everyone`",
    )  # fmt: skip
    await until(world, lambda said: any("Answer to" in each for each in said))

    assert [(seen.pings, seen.mentions) for seen in world.replies()] == [((), ())]


class Quoting(FakeAnswerer):
    """Answers with text of a repository in which everybody is named."""

    def _answer(self, question: str, *, stopped: bool) -> Answer:
        text = "Answer to @everyone, @here, <@&1> `@everyone`:\n```py\nsend('@everyone')\n```\n[@everyone](https://x.y)"
        return replace(super()._answer(question, stopped=stopped), text=text)


async def test_a_question_deleted_before_it_is_answered_leaves_its_thread_empty(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    message = await world.mention("where is send?")
    await world.agent.begun.acquire()
    world.fake.delete(message)
    await settled(world)


async def test_a_thread_deleted_while_it_is_answered_in_is_not_begun_again(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    thread = await world.mention("where is send?")
    await world.agent.begun.acquire()
    await until(world, lambda said: len(said) == 1)
    world.fake.delete_channel(thread)
    world.agent.gate.set()
    await until(world, lambda _: not world.conversations.turns.list_active())

    assert world.fake.threads_in(world.channel) == []
    assert world.said() == []


async def test_questions_that_a_moderator_clears_away_have_their_answers_withdrawn(world: DiscordWorld) -> None:
    asked = [await world.mention("where is send?"), await world.mention("where is receive?")]
    await until(world, lambda said: sum("Answer to" in each for each in said) == 2)
    cleared = {"ids": asked, "channel_id": world.channel, "guild_id": world.fake.guild_id}
    world.fake.gateway.sessions[-1].dispatch("MESSAGE_DELETE_BULK", cleared)
    await settled(world)


async def test_the_cross_as_reaction_stops_for_the_asker_alone(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    (reply,) = world.replies()
    world.fake.react(reply.id, world.people["ann"], "🎉")
    world.fake.react(reply.id, world.people["bob"], "❌")
    world.fake.react(reply.id, world.people["ann"], "❌")
    await settled(world, "Stopped, as you asked.")


async def test_an_answer_is_watched_by_a_reaction_until_that_is_taken_away(world: DiscordWorld) -> None:
    world.agent.cites = True
    await world.mention("where is send?")
    await settled(world, "demo at 0123456")
    (reply,) = world.replies()
    living, inbox = world.conversations.deps.living, world.conversations.deps.inbox
    entry = (await inbox.list_newest("discord", most=1))[0]
    await world.conversations.turns.wait_for(entry.id)
    assert living is not None

    async def is_watched() -> bool:
        answer = await living.find(entry.run_id)
        return answer is not None and answer.is_watched

    world.fake.react(reply.id, world.people["ann"], "👀")
    await wait_until(is_watched, "the answer is watched")
    world.fake.unreact(reply.id, world.people["ann"], "👀")

    async def is_left_alone() -> bool:
        return not await is_watched()

    await wait_until(is_left_alone, "the answer is watched no more")


async def test_a_voice_channel_gets_its_answer_below_the_question(world: DiscordWorld) -> None:
    voice = world.fake.add_channel("standup", kind=Kind.VOICE)
    question = world.fake.mention(voice, world.people["ann"], "where is send?")
    await settled(world, "Answer to: where is send?")

    assert [seen.reply_to for seen in world.fake.answers(voice)] == [question]


class Core:
    """Keeps what it hears; the database is broken for as many messages as `failures` says."""

    def __init__(self, failures: int) -> None:
        self.heard = 0
        self.failures = failures

    async def hear(self) -> None:
        if self.failures:
            self.failures -= 1
            raise InboxError("The disk is full.")
        self.heard += 1


@pytest.mark.parametrize(("failures", "stored"), [(0, True), (3, True), (99, False)])
async def test_what_cannot_be_stored_is_tried_again_for_a_while(failures: int, stored: bool) -> None:
    clock, core = FakeClock(), Core(failures)

    assert await clock.run(deliver_with_retry(core.hear, clock)) == stored
    assert core.heard == int(stored)


async def test_a_discord_that_is_away_is_a_sentence_that_says_where_to_look() -> None:
    async with FakeDiscord() as fake:
        fake.faults.http("get_current_user", 503)
        with pytest.raises(
            PlatformUnreachable, match=r"cannot be reached .* Check the network and DISCORD_API_BASE_URL"
        ):
            async with DiscordAdapter.open(DiscordWorld(fake, Path("unused")).options, fake.clock):
                pass


async def test_a_refused_intent_says_what_to_click(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        fake.portal.privileged.clear()
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        with pytest.raises(SettingsError, match="Message Content Intent"):
            await world.begin()


async def test_a_token_that_is_changed_while_citebot_runs_ends_it_with_a_sentence(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        await world.begin()
        fake.gateway.close_with(4004)
        task = world.task
        async with expect("a token that is changed while citebot runs ends it with a sentence"):
            await asyncio.wait({task})
        with pytest.raises(SettingsError, match="Reset Token"):
            task.result()


async def test_what_is_missing_is_told_with_where_to_click(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        options = DiscordWorld(fake, tmp_path / "inbox.sqlite").options
        async with DiscordAdapter.open(options, fake.clock) as discord:
            assert await discord.list_problems() == []
        fake.portal.public = True
        async with DiscordAdapter.open(options, fake.clock) as discord:
            (public,) = await discord.list_problems()
            assert "switch Public Bot off" in public
        async with DiscordAdapter.open(replace(options, servers=(fake.guild_id,)), fake.clock) as discord:
            assert await discord.list_problems() == []
        fake.portal.public = False
        fake.portal.privileged.clear()
        async with DiscordAdapter.open(replace(options, servers=("123",)), fake.clock) as discord:
            content, invited = await discord.list_problems()
            assert "Privileged Gateway Intents" in content
            assert "not in the server 123" in invited
        fake.remove_bot()
        async with DiscordAdapter.open(replace(options, message_content=False), fake.clock) as discord:
            content, invited = await discord.list_problems()
            assert "mentioned in threads" in content
            assert f"client_id={fake.bot_id}" in invited


def test_an_empty_token_says_where_to_find_one() -> None:
    with pytest.raises(SettingsError, match="Reset Token"):
        DiscordOptions(token=" ")


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(DiscordOptions(token="secret"))
