"""Replies in Slack, from the sign of life to the last word, whatever Slack does on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from bot.adapters.slack.adapter import SlackAdapter, SlackOptions
from bot.adapters.slack.platform import RATES, SlackPlatform, Streaming
from bot.errors import EditRefused, PlatformUnreachable, PostRefused, RateLimited
from bot.messages import Attachment, Button, MessageContent, MessageHandle, Place
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from tests.fakes.slack import Clock, FakeSlack, Seen
from tests.waiting import expect

T = TypeVar("T")
NONCE = "0123456789abcdef0123456789abcdef"
RATING = (Button(action="good", label="Helpful", value=NONCE), Button(action="bad", label="Not helpful", value=NONCE))
WORKING = MessageContent(status="Reading the question …")
DONE = MessageContent(text="It is in `session.py`.", footer="demo at 0123456", buttons=RATING)


class Desk:
    """A workspace with one question in it, and a platform to reply on. Time passes whenever everybody waits for it."""

    def __init__(self, fake: FakeSlack, stack: AsyncExitStack) -> None:
        self.fake = fake
        self.ann = fake.add_user("ann")
        self.channel = fake.add_channel("general", members=(self.ann,))
        self.question = ""
        self.expiring = False
        self.noted: list[Sequence[MessageHandle]] = []
        self._stack = stack

    async def platform(self, streaming: Streaming = "auto") -> SlackPlatform:
        """Begin a process; the question is asked in the first one."""
        options = SlackOptions(
            bot_token=self.fake.bot_token, app_token="xapp", api_url=self.fake.api_url, streaming=streaming, rates=RATES
        )
        slack = await self._stack.enter_async_context(SlackAdapter.open(options, self.fake.clock))
        self.question = self.question or await self.fake.mention(self.channel, self.ann, "where is send?")
        return slack.platform

    @property
    def place(self) -> Place:
        return Place(platform="slack", workspace="T0HOME", channel=self.channel, thread=self.question)

    def reply(self, platform: SlackPlatform, **given: Any) -> Reply:
        async def note(handles: Sequence[MessageHandle]) -> None:
            self.noted.append(handles)

        return Reply(ReplyTransport.of(platform, self.fake.clock), self.place, nonce=NONCE, note=note, **given)

    def answers(self) -> list[Seen]:
        return self.fake.answers(self.channel, self.question)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, letting time pass."""
        task = asyncio.ensure_future(work)
        async with expect("task.done()"):
            while not task.done():
                await asyncio.wait({task}, timeout=0.02)
                self.fake.clock.advance(0.5)
        return task.result()

    async def grown(self, reply: Reply, content: MessageContent, shown: str, *then: tuple[MessageContent, str]) -> None:
        """Let a reply grow until it shows some words, then others. Before the second the streams may be expired."""

        async def grow() -> None:
            async with reply.keep_growing():
                for newest, words in ((content, shown), *then):
                    reply.show(newest)
                    await self.fake.until(lambda words=words: any(words in wording(each) for each in self.answers()))  # type: ignore[misc]
                    if self.expiring:
                        self.fake.expire_streams()

        await self.run(grow())


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with FakeSlack(clock=Clock(frozen=True)) as fake, AsyncExitStack() as stack:
        yield Desk(fake, stack)


def wording(seen: Seen) -> str:
    return "\n".join([seen.text, *seen.tasks])


def text_of(seen: Seen) -> str:
    """The text of a message, without what stands below it."""
    below = {"Helpful", "Not helpful", "Stop", "demo at 0123456"}
    return "\n".join(line for line in seen.text.split("\n") if line not in below)


async def test_a_stream_shows_its_steps_then_its_text_then_what_stands_below(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    assert desk.answers()[0].tasks == {"Reading the question …": "in_progress"}
    searching = MessageContent(status="Searching `send` …")
    await desk.grown(reply, searching, "Searching send …", (MessageContent(text="It is in "), "It is in"))
    await desk.run(reply.settle(DONE))

    (seen,) = desk.answers()
    assert (text_of(seen), seen.streaming, seen.edits) == ("It is in `session.py`.", False, 0)
    assert "demo at 0123456" in seen.text
    assert seen.buttons == ("citebot_rate",)
    assert list(seen.tasks.values()) == ["complete"]


async def test_without_streams_one_message_is_changed(desk: Desk) -> None:
    reply = desk.reply(await desk.platform("off"))
    await desk.run(
        reply.begin(MessageContent(status="Reading …", buttons=(Button(action="stop", label="Stop", value="1"),)))
    )
    assert desk.answers()[0].buttons == ("citebot_stop",)
    await desk.grown(reply, MessageContent(text="It is"), "It is")
    await desk.run(reply.settle(DONE))

    (seen,) = desk.answers()
    assert text_of(seen) == "It is in `session.py`."
    assert seen.buttons == ("citebot_rate",)
    assert not desk.fake.calls_of("chat.startStream")


@pytest.mark.parametrize("refusal", ["unknown_method", "feature_not_enabled", "method_deprecated"])
async def test_a_workspace_without_streams_is_asked_for_one_once(desk: Desk, refusal: str) -> None:
    desk.fake.streaming.refusal = refusal
    platform = await desk.platform()
    ways = ReplyTransport.of(platform, desk.fake.clock)

    async def note(handles: Sequence[MessageHandle]) -> None: ...

    for number in range(2):
        reply = Reply(ways, desk.place, nonce=f"{number}{NONCE}", note=note)
        await desk.run(reply.begin(WORKING))
        await desk.run(reply.settle(DONE))

    assert [text_of(seen) for seen in desk.answers()] == ["It is in `session.py`."] * 2
    assert len(desk.fake.calls_of("chat.startStream")) == 1


async def test_a_stream_that_expires_before_any_text_goes_on_by_edits(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    desk.fake.expire_streams()
    await desk.grown(reply, MessageContent(text="It is in the "), "It is in")
    await desk.run(reply.settle(DONE))

    assert [text_of(seen) for seen in desk.answers()] == ["It is in `session.py`."]


async def test_a_stream_that_expires_with_text_loses_and_doubles_none(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    desk.expiring = True
    longer = MessageContent(text="It is in the file that "), "the file that"
    await desk.grown(reply, MessageContent(text="It is in the "), "It is in", longer)
    await desk.run(reply.settle(MessageContent(text="It is in the file that holds sessions.")))

    (seen,) = desk.answers()
    assert seen.text == "It is in the file that holds sessions."
    assert all(version.count("It is") <= 1 for version in seen.versions)


async def test_a_stream_that_expires_at_its_end_is_completed_by_an_edit(desk: Desk) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    await desk.grown(reply, MessageContent(text="It is in "), "It is in")
    desk.fake.clock.advance(301)
    await desk.run(reply.settle(DONE))

    (seen,) = desk.answers()
    assert (text_of(seen), seen.edits) == ("It is in `session.py`.", 1)


@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream"])
@pytest.mark.parametrize("after", [False, True])
async def test_a_lost_answer_to_a_stream_call_neither_loses_nor_doubles(desk: Desk, method: str, after: bool) -> None:
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    desk.fake.faults.reset(method, after=after)
    await desk.grown(reply, MessageContent(text="It is in the "), "It is in")
    await desk.run(reply.settle(MessageContent(text="It is in the session.")))

    assert [seen.text for seen in desk.answers()] == ["It is in the session."]


@pytest.mark.parametrize("method", ["chat.startStream", "chat.appendStream", "chat.stopStream"])
async def test_a_stream_waits_when_slack_says_so(desk: Desk, method: str) -> None:
    reply = desk.reply(await desk.platform())
    desk.fake.faults.ratelimited(method, retry_after=3)
    await desk.run(reply.begin(WORKING))
    await desk.grown(reply, MessageContent(text="It is in the "), "It is in")
    await desk.run(reply.settle(MessageContent(text="It is in the session.")))

    assert [seen.text for seen in desk.answers()] == ["It is in the session."]
    calls = [call.at for call in desk.fake.calls_of(method)]
    assert len(calls) == 1 or calls[1] - calls[0] >= 3


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
async def test_edits_wait_when_slack_says_so(desk: Desk, method: str) -> None:
    reply = desk.reply(await desk.platform("off"))
    desk.fake.faults.ratelimited(method, retry_after=7)
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(DONE))

    assert [text_of(seen) for seen in desk.answers()] == ["It is in `session.py`."]
    first, second = [call.at for call in desk.fake.calls_of(method)][:2]
    assert second - first >= 7


@pytest.mark.parametrize("streaming", ["auto", "off"])
async def test_a_first_message_whose_answer_was_lost_is_found_again(desk: Desk, streaming: Streaming) -> None:
    desk.fake.faults.reset("chat.startStream" if streaming == "auto" else "chat.postMessage", after=True)
    reply = desk.reply(await desk.platform(streaming))
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(DONE))

    assert [text_of(seen) for seen in desk.answers()] == ["It is in `session.py`."]


@pytest.mark.parametrize("streaming", ["auto", "off"])
async def test_a_new_process_completes_a_message_that_nobody_noted(desk: Desk, streaming: Streaming) -> None:
    first = await desk.platform(streaming)
    if streaming == "auto":
        await first.open_stream(desk.place, WORKING, nonce=f"{NONCE[:20]}.0")
    else:
        await first.post(desk.place, WORKING, nonce=f"{NONCE[:20]}.0")
    reply = desk.reply(await desk.platform(streaming), recovered=True)
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(DONE))

    assert [text_of(seen) for seen in desk.answers()] == ["It is in `session.py`."]
    assert not desk.answers()[0].streaming


async def test_an_earlier_answer_in_the_thread_is_not_taken_for_a_lost_one(desk: Desk) -> None:
    platform = await desk.platform()
    reply = desk.reply(platform)
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(DONE))

    assert await platform.find_reply(desk.place, f"{'f' * 20}.0") is None


async def test_an_open_stream_is_ended_when_its_message_is_changed(desk: Desk) -> None:
    platform = await desk.platform()
    stream = await platform.open_stream(desk.place, WORKING, nonce="1")
    await stream.append("It is ", MessageContent())

    await platform.edit(stream.handle, DONE)

    (seen,) = desk.answers()
    assert (text_of(seen), seen.streaming) == ("It is in `session.py`.", False)


async def test_slacks_own_stop_button_is_heard_at_the_next_piece(desk: Desk) -> None:
    stops: list[bool] = []
    reply = desk.reply(await desk.platform(), on_stop=lambda: stops.append(True))
    await desk.run(reply.begin(WORKING))
    await desk.fake.stop_session(desk.channel, desk.question, desk.ann)
    await desk.grown(reply, MessageContent(text="It is in "), "It is in")
    await desk.run(reply.settle(MessageContent(text="Stopped, as you asked.")))

    assert stops == [True]
    assert [seen.text for seen in desk.answers()] == ["Stopped, as you asked."]


async def test_the_longest_answer_becomes_a_file(desk: Desk) -> None:
    text = "\n".join(f"Line {number} of the longest answer about sessions." for number in range(2_000))
    reply = desk.reply(await desk.platform())
    await desk.run(reply.begin(WORKING))
    await desk.run(reply.settle(MessageContent(text=text, buttons=RATING)))

    (file,) = desk.fake.files.stored.values()
    assert (file.name, file.shared) == ("answer.md", True)
    assert file.content == text.encode()
    assert [seen.files for seen in desk.answers()][-1] == ("answer.md",)


async def test_a_file_is_attached_once_by_the_processes_that_settle_a_reply(desk: Desk) -> None:
    before, after = await desk.platform(), await desk.platform()
    handle = await before.post(desk.place, WORKING, nonce="1")
    done = MessageContent(text="Done.", file=Attachment(name="a.patch", text="all"))
    await before.edit(handle, done)  # and it is killed before it has noted that the reply is settled

    await after.edit(handle, done)
    assert [seen.files for seen in desk.answers()] == [(), ("a.patch",)]

    longer = MessageContent(text="Done.", file=Attachment(name="a.patch", text="all of it"))
    await after.edit(handle, longer)
    desk.fake.clock.advance(1)
    later = await before.post(desk.place, WORKING, nonce="2")
    await after.edit(later, done)
    assert [seen.files for seen in desk.answers()] == [(), ("a.patch",), ("a.patch",), (), ("a.patch",)]


async def test_a_file_that_may_not_be_sent_is_told(desk: Desk) -> None:
    desk.fake.access.scopes.discard("files:write")
    platform = await desk.platform()

    await platform.post(
        desk.place, MessageContent(text="Too long.", file=Attachment(name="a.md", text="all")), nonce="1"
    )

    assert "files:write" in desk.answers()[0].text


async def test_nothing_rings_and_nothing_is_previewed(desk: Desk) -> None:
    platform = await desk.platform()
    await platform.post(
        desk.place, MessageContent(text="See [x](https://git.example.com/x).", status="`<!here>` & <@U1>"), nonce="1"
    )

    (seen,) = desk.answers()
    assert (seen.pings, seen.previews) == ((), False)
    (call,) = desk.fake.calls_of("chat.postMessage")
    assert "&lt;!here&gt;" in str(call.args["blocks"])


async def test_footers_show_links_as_slack_writes_them(desk: Desk) -> None:
    platform = await desk.platform()
    await platform.post(
        desk.place, MessageContent(text="x", footer="at [0123](https://git.example.com/c/0123)"), nonce="1"
    )

    assert desk.answers()[0].blocks[-1]["elements"][0]["text"] == "at <https://git.example.com/c/0123|0123>"


async def test_a_message_that_is_gone_is_withdrawn_already(desk: Desk) -> None:
    platform = await desk.platform()
    handle = await platform.post(desk.place, DONE, nonce="1")
    await platform.withdraw(handle)
    await platform.withdraw(handle)

    assert desk.answers() == []
    with pytest.raises(EditRefused, match="message_not_found"):
        await platform.edit(handle, DONE)


async def test_where_edits_are_over_the_answer_is_a_new_message(desk: Desk) -> None:
    desk.fake.workspace.edit_window = 60
    reply = desk.reply(await desk.platform("off"))
    await desk.run(reply.begin(WORKING))
    desk.fake.clock.advance(100)
    await desk.run(reply.settle(DONE))

    assert [text_of(seen) for seen in desk.answers()] == ["It is in `session.py`."]


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (lambda fake: fake.faults.error("chat.postMessage", "is_archived"), PostRefused),
        (lambda fake: fake.faults.error("chat.postMessage", "internal_error"), PlatformUnreachable),
        (lambda fake: fake.faults.error("chat.postMessage", "a_new_error"), PostRefused),
        (lambda fake: fake.faults.http("chat.postMessage", 503), PlatformUnreachable),
        (lambda fake: fake.faults.reset("chat.postMessage"), PlatformUnreachable),
        (lambda fake: fake.faults.ratelimited("chat.postMessage", retry_after=9), RateLimited),
    ],
)
async def test_what_goes_wrong_becomes_a_chat_error(
    desk: Desk, order: Callable[[FakeSlack], None], error: type[Exception]
) -> None:
    platform = await desk.platform()
    order(desk.fake)

    with pytest.raises(error) as raised:
        await platform.post(desk.place, DONE, nonce="1")
    assert getattr(raised.value, "retry_after", 9) == 9
    assert len(desk.fake.calls_of("chat.postMessage")) == 1


async def test_the_newest_messages_of_a_long_thread_are_read_each_once(desk: Desk) -> None:
    platform = await desk.platform()
    desk.fake.conversations.root_on_every_page = True
    for number in range(450):
        await desk.fake.message(desk.channel, desk.ann, f"word {number} of `setup.py`", desk.question)
    await platform.post(desk.place, MessageContent(text="Mine."), nonce="1")
    last = await desk.fake.mention(desk.channel, desk.ann, "and now?", desk.question)

    read = await platform.read_thread(desk.place, before=last, limit=40)

    assert [message.own for message in read] == [False] * 39 + [True]
    assert read[-2].text == "word 449 of `setup.py`"
    assert len({message.id for message in read}) == 40


async def test_reading_waits_when_slack_says_so(desk: Desk) -> None:
    platform = await desk.platform()
    desk.fake.faults.ratelimited("conversations.replies", retry_after=5)

    read = await desk.run(platform.read_thread(desk.place, before="9999999999.0", limit=5))

    assert [message.text for message in read] == ["where is send?"]


async def test_a_hint_is_a_status_and_its_refusal_no_error(desk: Desk) -> None:
    platform = await desk.platform()
    await platform.hint(desk.place, "is reading …")
    assert desk.fake.status(desk.channel, desk.question) == "is reading …"

    desk.fake.faults.error("assistant.threads.setStatus", "unknown_method")
    await platform.hint(desk.place, "is searching …")
    assert desk.fake.status(desk.channel, desk.question) == "is reading …"
