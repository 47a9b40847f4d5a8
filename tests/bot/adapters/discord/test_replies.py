"""Replies in Discord, from the sign of life to the last word, whatever Discord does on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from bot.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from bot.adapters.discord.platform import DiscordPlatform
from bot.errors import ChatError, EditRefused, MessageTooLong, PlatformUnreachable, PostRefused, RateLimited
from bot.messages import Attachment, Button, MessageContent, MessageHandle, Place
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from tests.fakes.discord import Clock, FakeDiscord, Kind, Permission, Seen
from tests.waiting import expect

T = TypeVar("T")
NONCE = "0123456789abcdef0123456789abcdef"
STOP = (Button(action="stop", label="Stop", value=NONCE),)
RATING = (Button(action="good", label="Helpful", value=NONCE), Button(action="bad", label="Not helpful", value=NONCE))
WORKING = MessageContent(status="Reading the question …", buttons=STOP)
DONE = MessageContent(text="It is in `session.py`.", footer="demo at 0123456", buttons=RATING)


class Desk:
    """A server with one question in it, and a platform to reply on. Time passes whenever everybody waits for it."""

    def __init__(self, fake: FakeDiscord, stack: AsyncExitStack) -> None:
        self.fake = fake
        self.ann = fake.add_user("ann")
        self.channel = fake.add_channel("general")
        self.question = fake.mention(self.channel, self.ann, "where is `send`?")
        self.noted: list[Sequence[MessageHandle]] = []
        self._stack = stack

    async def platform(self) -> DiscordPlatform:
        """Begin a process."""
        options = DiscordOptions(token=self.fake.token, api_url=self.fake.api_url, gateway_url=self.fake.gateway_url)
        discord = await self._stack.enter_async_context(DiscordAdapter.open(options, self.fake.clock))
        return discord.platform

    @property
    def place(self) -> Place:
        return Place(platform="discord", workspace=self.fake.guild_id, channel=self.channel, thread=self.question)

    def reply(self, platform: DiscordPlatform, **given: Any) -> Reply:
        async def note(handles: Sequence[MessageHandle]) -> None:
            self.noted.append(handles)

        return Reply(ReplyTransport.of(platform, self.fake.clock), self.place, nonce=NONCE, note=note, **given)

    def answers(self) -> list[Seen]:
        """What citebot said in the thread."""
        return self.fake.answers(self.question) if self.question in self.fake.world.channels else []

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, letting time pass."""
        task = asyncio.ensure_future(work)
        async with expect("task.done()"):
            while not task.done():
                await asyncio.wait({task}, timeout=0.02)
                self.fake.clock.advance(0.5)
        return task.result()

    async def grown(self, reply: Reply, content: MessageContent, shown: str) -> None:
        """Let a reply grow until it shows some words."""

        async def grow() -> None:
            async with reply.keep_growing():
                reply.show(content)
                await self.fake.until(lambda: any(shown in each.text for each in self.answers()))

        await self.run(grow())


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with FakeDiscord(clock=Clock(frozen=True)) as fake, AsyncExitStack() as stack:
        fake.limits.enabled = False
        yield Desk(fake, stack)


async def test_a_reply_begins_a_thread_and_grows_in_one_message(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    assert desk.answers()[0].text == "-# *Reading the question …*"
    assert list(desk.answers()[0].buttons) == ["Stop"]
    await desk.grown(reply, MessageContent(text="It is", status="Searching …", buttons=STOP), "It is")
    await desk.run(reply.settle(DONE))

    (seen,) = desk.answers()
    assert seen.text == "It is in `session.py`.\n-# demo at 0123456"
    assert list(seen.buttons) == ["Helpful", "Not helpful"]
    assert desk.fake.thread(desk.question).name == "where is send?"


async def test_changes_come_at_least_as_far_apart_as_discord_likes(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))

    async def grow() -> None:
        async with reply.keep_growing():
            for number in range(40):
                reply.show(MessageContent(text=f"word {number} "))
                await desk.fake.clock.sleep(0.4)

    await desk.run(grow())
    await desk.run(reply.settle(DONE))
    times = [call.at for call in desk.fake.calls_of("edit_message")]
    gaps = [later - earlier for earlier, later in pairwise(times[:-1])]
    assert len(times) > 3
    assert min(gaps) >= 1.2
    assert all(len([at for at in times if begin <= at < begin + 5]) <= 5 for begin in times)


async def test_an_answer_of_nine_thousand_characters_goes_on_in_whole_messages(desk: Desk) -> None:
    code = "\n".join(f"def function_{number}():\n    return {number}" for number in range(110))
    words = " ".join(f"word{number}" for number in range(720))
    text = f"{words}\n\n```python\n{code}\n```\n\nThat is all, [here](https://git.example.com/a.py#L1)."
    assert len(text) > 9_000
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(replace(DONE, text=text)))

    seen = desk.answers()
    assert len(seen) >= 5
    assert all(len(each.text.encode("utf-16-le")) // 2 <= 2_000 for each in seen)
    assert all(each.text.count("```") % 2 == 0 for each in seen)
    shown = "\n".join(each.text for each in seen)
    assert all(f"return {number}\n" in f"{shown}\n" for number in range(110))
    assert all(f"word{number}" in shown for number in range(720))
    assert [bool(each.buttons) for each in seen] == [False] * (len(seen) - 1) + [True]


async def test_the_longest_answer_is_a_beginning_and_a_file(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(replace(DONE, text="\n\n".join(f"Line {number}. " * 20 for number in range(200)))))

    assert [each.files for each in desk.answers()] == [(), ("answer.md",)]


async def test_a_file_that_may_not_be_sent_is_told(desk: Desk) -> None:
    desk.fake.deny(desk.channel, desk.fake.bot_id, Permission.ATTACH_FILES)
    platform = await desk.platform()
    long = MessageContent(text="See below.", file=Attachment(name="answer.md", text="all of it"))
    await platform.post(desk.place, long, nonce="n.0")

    (seen,) = desk.answers()
    assert "The file could not be attached" in seen.text
    assert seen.files == ()


async def test_nothing_rings_and_nothing_is_previewed(desk: Desk) -> None:
    platform = await desk.platform()
    ringing = MessageContent(text=f"@everyone <@{desk.ann}> <@&{desk.fake.bot_role}> https://git.example.com/x")
    handle = await platform.post(desk.place, ringing, nonce="n.0")
    assert [(seen.pings, seen.mentions, seen.previews) for seen in desk.answers()] == [((), (), False)]

    await platform.edit(handle, replace(ringing, text=f"{ringing.text} again"))

    assert [(seen.pings, seen.mentions, seen.previews) for seen in desk.answers()] == [((), (), False)]


async def test_a_thread_that_is_there_already_is_used(desk: Desk) -> None:
    desk.fake.start_thread(desk.channel, desk.ann, "our talk", message=desk.question)
    platform = await desk.platform()
    platform._reply_targets.expect(desk.place, "where is send?")
    await platform.post(desk.place, DONE, nonce="n.0")

    assert [call.code for call in desk.fake.calls_of("start_thread_from_message")] == [160004]
    assert len(desk.answers()) == 1


@pytest.mark.parametrize("code", [50001, 50013, 50024, 160006])
async def test_where_no_thread_can_begin_the_question_is_replied_to(desk: Desk, code: int) -> None:
    desk.fake.faults.refuse("start_thread_from_message", code)
    platform = await desk.platform()
    handle = await platform.post(desk.place, WORKING, nonce="n.0")
    await platform.post(desk.place, DONE, nonce="n.1")
    await platform.edit(handle, DONE)

    seen = desk.fake.answers(desk.channel)
    assert [(each.reply_to, each.pings) for each in seen] == [(desk.question, ())] * 2
    assert seen[0].text == seen[1].text
    assert len(desk.fake.calls_of("start_thread_from_message")) == 1


async def test_a_thread_that_discord_did_not_start_at_once_is_asked_for_again(desk: Desk) -> None:
    desk.fake.faults.refuse("start_thread_from_message", 0, status=503)
    reply = desk.reply(await desk.platform())

    await desk.run(reply.begin(WORKING))

    assert len(desk.answers()) == 1
    assert desk.fake.answers(desk.channel) == []


async def test_where_no_thread_can_be_had_twice_the_question_is_replied_to(desk: Desk) -> None:
    desk.fake.faults.refuse("start_thread_from_message", 0, status=503, times=None)
    reply = desk.reply(await desk.platform())

    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(DONE))

    assert [each.reply_to for each in desk.fake.answers(desk.channel)] == [desk.question]
    assert len(desk.fake.calls_of("start_thread_from_message")) == 2


async def test_where_threads_take_no_messages_the_question_is_replied_to(desk: Desk) -> None:
    desk.fake.deny(desk.channel, desk.fake.bot_id, Permission.SEND_MESSAGES_IN_THREADS)
    platform = await desk.platform()
    await platform.post(desk.place, DONE, nonce="n.0")

    assert [each.reply_to for each in desk.fake.answers(desk.channel)] == [desk.question]
    assert desk.answers() == []


async def test_a_channel_that_takes_no_messages_is_a_sentence(desk: Desk) -> None:
    desk.fake.deny(desk.channel, desk.fake.bot_id, Permission.SEND_MESSAGES, Permission.SEND_MESSAGES_IN_THREADS)
    platform = await desk.platform()
    with pytest.raises(PostRefused, match="Send Messages"):
        await platform.post(desk.place, DONE, nonce="n.0")


async def test_a_question_that_was_deleted_begins_no_thread(desk: Desk) -> None:
    platform = await desk.platform()
    desk.fake.delete(desk.question)
    with pytest.raises(PostRefused, match="Unknown Message"):
        await platform.post(desk.place, DONE, nonce="n.0")


async def test_a_question_that_cannot_be_read_begins_a_thread_without_its_name(desk: Desk) -> None:
    desk.fake.faults.refuse("get_channel_message", 50001)
    platform = await desk.platform()
    await platform.post(desk.place, DONE, nonce="n.0")

    assert desk.fake.thread(desk.question).name == "Question"


async def test_a_locked_thread_is_a_sentence(desk: Desk) -> None:
    thread = desk.fake.start_thread(desk.channel, desk.ann, "talk", message=desk.question)
    desk.fake.archive(thread, locked=True)
    platform = await desk.platform()
    with pytest.raises(PostRefused, match="locked"):
        await platform.post(desk.place, DONE, nonce="n.0")


async def test_a_deleted_thread_is_not_begun_again(desk: Desk) -> None:
    platform = await desk.platform()
    await platform.post(desk.place, DONE, nonce="n.0")
    platform._reply_targets.close(desk.question)
    with pytest.raises(PostRefused, match="deleted"):
        await platform.post(desk.place, DONE, nonce="n.1")


async def test_an_archived_thread_is_brought_back_for_a_change(desk: Desk) -> None:
    platform = await desk.platform()
    handle = await platform.post(desk.place, WORKING, nonce="n.0")
    desk.fake.archive(desk.question)
    await platform.edit(handle, DONE)

    assert "session.py" in desk.answers()[0].text
    assert not desk.fake.thread(desk.question).thread.archived


async def test_a_new_process_writes_in_an_archived_thread(desk: Desk) -> None:
    await (await desk.platform()).post(desk.place, WORKING, nonce="n.0")
    desk.fake.archive(desk.question)
    await (await desk.platform()).post(desk.place, DONE, nonce="m.0")

    assert len(desk.answers()) == 2
    assert len(desk.fake.calls_of("start_thread_from_message")) == 1


@pytest.mark.parametrize("call", ["create_message", "start_thread_from_message"])
@pytest.mark.parametrize("after", [False, True])
async def test_a_lost_answer_to_a_call_doubles_nothing(desk: Desk, call: str, after: bool) -> None:
    desk.fake.faults.reset(call, after=after)
    reply = desk.reply(await desk.platform())
    try:
        await desk.run(reply.begin(WORKING))
    except PlatformUnreachable:
        await desk.run(reply.settle(DONE))
    else:
        await desk.run(reply.settle(DONE))

    (seen,) = desk.answers()
    assert "session.py" in seen.text
    assert len(desk.fake.threads_in(desk.channel)) == 1


async def test_a_send_that_discord_py_repeats_is_not_doubled(desk: Desk) -> None:
    desk.fake.faults.http("create_message", 502, after=True)
    platform = await desk.platform()
    await platform.post(desk.place, DONE, nonce="n.0")

    assert len(desk.fake.calls_of("create_message")) == 2
    assert len(desk.answers()) == 1


async def test_a_nonce_of_a_deleted_message_is_replaced(desk: Desk) -> None:
    platform = await desk.platform()
    for _ in range(3):
        handle = await platform.post(desk.place, DONE, nonce="n.0")
        await platform.withdraw(handle)
    await platform.post(desk.place, DONE, nonce="n.0")

    assert len(desk.answers()) == 1


async def test_a_nonce_that_a_kept_message_bears_hides_no_text(desk: Desk) -> None:
    platform = await desk.platform()
    handles = [await platform.post(desk.place, WORKING, nonce=f"{NONCE[:20]}.{number}") for number in (0, 2)]
    reply = desk.reply(platform, handles=handles)
    await desk.run(reply.settle(replace(DONE, text="some words " * 500)))

    shown = " ".join(seen.text for seen in desk.answers())
    assert shown.count("some words") == 500
    assert len({handle.id for handle in reply.handles}) == len(reply.handles) == len(desk.answers()) == 3


async def test_no_two_changes_of_a_message_are_under_way_at_a_time(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    gate = desk.fake.faults.hang("edit_message")

    async def grow() -> None:
        async with reply.keep_growing():
            reply.show(MessageContent(text="one "))
            await desk.fake.until(lambda: gate.waiting)
            for word in ("two ", "three ", "four "):
                reply.show(MessageContent(text=word))
                await desk.fake.clock.sleep(3)
            assert len(desk.fake.calls_of("edit_message")) == 1
            gate.release()

    await desk.run(grow())
    await desk.run(reply.settle(DONE))

    assert [version.split("\n")[0].strip() for version in desk.answers()[0].versions] == [
        "-# *Reading the question …*", "one", "It is in `session.py`.",
    ]  # fmt: skip


async def test_a_new_process_completes_a_message_that_nobody_noted(desk: Desk) -> None:
    await desk.run(desk.reply(await desk.platform()).begin(WORKING))
    desk.fake.clock.advance(1_000)  # long after Discord has forgotten the nonce
    reply = desk.reply(await desk.platform(), recovered=True)
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(DONE))

    (seen,) = desk.answers()
    assert "session.py" in seen.text


async def test_an_earlier_answer_in_the_thread_is_not_taken_for_a_lost_one(desk: Desk) -> None:
    platform = await desk.platform()
    await platform.post(desk.place, WORKING, nonce="another.0")

    assert await platform.find_reply(desk.place, f"{NONCE[:20]}.0") is None


@pytest.mark.parametrize("code", [10008, 30046])
async def test_where_a_message_cannot_be_changed_the_answer_is_a_new_one(desk: Desk, code: int) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    desk.fake.faults.refuse("edit_message", code, times=5 if code == 30046 else 1)
    await desk.run(reply.settle(DONE))

    assert [seen.text for seen in desk.answers()] == ["It is in `session.py`.\n-# demo at 0123456"]


async def test_a_message_that_was_deleted_is_written_anew(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    desk.fake.delete(desk.answers()[0].id)
    await desk.run(reply.settle(DONE))

    assert len(desk.answers()) == 1


async def test_a_message_that_is_gone_is_withdrawn_already(desk: Desk) -> None:
    platform = await desk.platform()
    handle = await platform.post(desk.place, DONE, nonce="n.0")
    await platform.withdraw(handle)
    await platform.withdraw(handle)

    assert desk.answers() == []


def refusing(code: int) -> Callable[[FakeDiscord], None]:
    return lambda fake: fake.faults.refuse("create_message", code)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (refusing(50013), PostRefused),
        (refusing(160005), PostRefused),
        (refusing(40005), MessageTooLong),
        (refusing(0), PlatformUnreachable),  # the token was reset: the next process has the new one
        (lambda fake: fake.faults.reset("create_message"), PlatformUnreachable),
        (lambda fake: fake.faults.http("create_message", 503), PlatformUnreachable),
        (lambda fake: fake.faults.ratelimited("create_message", retry_after=120), RateLimited),
        (lambda fake: fake.faults.ratelimited("create_message", stray=True), RateLimited),
    ],
)
async def test_what_goes_wrong_becomes_a_chat_error(
    desk: Desk, order: Callable[[FakeDiscord], None], expected: type[ChatError]
) -> None:
    platform = await desk.platform()
    place = replace(desk.place, thread="")
    order(desk.fake)
    with pytest.raises(expected):
        await platform.post(place, DONE, nonce="n.0")


async def test_a_text_that_discord_finds_too_long_is_split_again(desk: Desk) -> None:
    desk.fake.rules.most_content = 900
    reply = desk.reply(await desk.platform())
    await desk.run(reply.settle(replace(DONE, text="some words " * 150)))

    seen = desk.answers()
    assert len(seen) > 1
    assert all(len(each.text) <= 900 for each in seen)
    assert " ".join(each.text for each in seen).count("some words") == 150


async def test_an_old_message_whose_changes_are_used_up_cannot_be_changed(desk: Desk) -> None:
    platform = await desk.platform()
    handle = await platform.post(desk.place, WORKING, nonce="n.0")
    desk.fake.clock.advance(4_000)
    desk.fake.faults.ratelimited("edit_message", retry_after=600)
    with pytest.raises(EditRefused, match="too old"):
        await platform.edit(handle, DONE)


async def test_a_thread_is_read_with_the_message_that_began_it(desk: Desk) -> None:
    bob = desk.fake.add_user("bob")
    root = desk.fake.message(desk.channel, bob, "The build fails.")
    thread = desk.fake.start_thread(desk.channel, bob, "build", message=root)
    for number in range(5):
        desk.fake.message(thread, desk.ann, f"Try {number}")
    last = desk.fake.mention(thread, desk.ann, "why?")
    platform = await desk.platform()
    read = await platform.read_thread(replace(desk.place, thread=thread), before=last, limit=10)

    assert [(each.author, each.text) for each in read] == [
        ("Bob", "The build fails."),
        *(("Ann", f"Try {number}") for number in range(5)),
    ]
    newest = await platform.read_thread(replace(desk.place, thread=thread), before=last, limit=2)
    assert [each.text for each in newest] == ["Try 3", "Try 4"]


async def test_a_hint_is_typing_and_its_refusal_no_error(desk: Desk) -> None:
    platform = await desk.platform()
    await platform.post(desk.place, WORKING, nonce="n.0")
    await platform.hint(desk.place, "Reading …")
    assert desk.fake.is_typing(desk.question)
    desk.fake.faults.refuse("trigger_typing_indicator", 50013)
    await platform.hint(desk.place, "Reading …")


async def test_a_voice_channel_is_replied_in(desk: Desk) -> None:
    voice = desk.fake.add_channel("standup", kind=Kind.VOICE)
    question = desk.fake.mention(voice, desk.ann, "where is send?")
    platform = await desk.platform()
    await platform.post(replace(desk.place, channel=voice, thread=question), DONE, nonce="n.0")

    assert [seen.reply_to for seen in desk.fake.answers(voice)] == [question]
