"""Replies that grow: nothing lost, nothing doubled, whatever the platform refuses."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from bot.errors import (
    ChatError,
    EditRefused,
    MessageTooLong,
    PlatformUnreachable,
    PostRefused,
    RateLimited,
    StreamGone,
    StreamRefused,
    StreamStopped,
)
from bot.messages import Capabilities, MessageContent, MessageHandle
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from tests.bot.chat import PLACE
from tests.fakes.clock import FakeClock
from tests.fakes.platform import ABLE, SLACK_LIKE, FakePlatform, unreachable
from tests.waiting import expect

THINKING = MessageContent(status="Reading the question …")
WORDS = [f"word{number} and `code{number}`, then more.\n\n" for number in range(40)]
ANSWER = MessageContent(text="".join(WORDS).rstrip(), footer="demo at 0123456")


class Stage:
    """A fake platform on a fake clock, and a reply on it."""

    def __init__(self, able: Capabilities = ABLE, **reply: object) -> None:
        self.clock = FakeClock()
        self.platform = FakePlatform(self.clock, able)
        self.transport = ReplyTransport.of(self.platform, self.clock)
        self.noted: list[tuple[str, ...]] = []
        self.stops = 0
        self.is_held = True
        self.reply = self.another()

    def another(self, handles: Sequence[MessageHandle] = (), *, recovered: bool = False) -> Reply:
        return Reply(
            self.transport, PLACE, nonce="n", note=self._note, handles=handles, recovered=recovered, on_stop=self._stop,
            may_grow=lambda: self.is_held,
        )  # fmt: skip

    async def _note(self, handles: Sequence[MessageHandle]) -> None:
        self.noted.append(tuple(handle.id for handle in handles))

    def _stop(self) -> None:
        self.stops += 1

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[None]:
        await self.reply.begin(THINKING)
        async with self.reply.keep_growing():
            yield

    async def grow(self, *, words: int = 20, seconds: float = 2.0) -> None:
        """Begin, let the text grow, settle."""
        async with self.begun():
            for number in range(1, words + 1):
                self.reply.show(MessageContent(text="".join(WORDS[:number]), status="Writing …"))
                await self.clock.sleep(seconds)
        await self.reply.settle(ANSWER)

    def whole(self) -> str:
        """All that people read, as one text."""
        return "".join(text.strip() for text in self.platform.texts()).replace("\n", "")


def flat(content: MessageContent) -> str:
    return content.text.replace("\n", "")


async def test_a_reply_that_may_be_somebody_elses_by_now_does_not_grow() -> None:
    stage = Stage()

    async def stand_still() -> None:
        async with stage.begun():
            stage.reply.show(MessageContent(text="one"))
            await stage.clock.sleep(5)
            stage.is_held = False
            stage.reply.show(MessageContent(text="two"))
            await stage.clock.sleep(5)

    await stage.clock.run(stand_still())

    (message,) = stage.platform.messages.values()
    assert [content.text for _, content in message.history] == ["", "one"]


async def test_a_reply_begins_with_a_sign_of_life_and_ends_in_the_same_message() -> None:
    stage = Stage(dataclasses.replace(ABLE, max_units=5_000))

    await stage.clock.run(stage.grow())

    (message,) = stage.platform.messages.values()
    assert message.history[0] == (1_000.0, THINKING)
    assert message.content == ANSWER
    assert stage.noted == [("r1",)]


@pytest.mark.parametrize("able", [ABLE, SLACK_LIKE])
async def test_a_placeholder_that_gets_no_answer_is_sent_again(able: Capabilities) -> None:
    stage = Stage(able)
    stage.platform.fail("post", unreachable(), times=2)
    stage.platform.fail("stream_start", unreachable())

    await stage.clock.run(stage.reply.begin(THINKING))

    assert [shown.content.status for shown in stage.platform.messages.values()] == [THINKING.status]


async def test_only_the_newest_text_is_sent_after_an_edit_that_took_long() -> None:
    stage = Stage(dataclasses.replace(ABLE, edit_every=0))
    stage.platform.gate = asyncio.Event()

    async with expect("only the newest text is sent after an edit that took long"), stage.begun():
        for number in range(10):
            stage.reply.show(MessageContent(text=f"text {number}"))
            await stage.clock.advance(1)
        stage.platform.gate.set()
        await stage.clock.advance(1)

    assert [content.text for _, content in stage.platform.messages["r1"].history] == ["", "text 0", "text 9"]


async def test_changes_of_a_message_keep_their_distance() -> None:
    stage = Stage()

    await stage.clock.run(stage.grow(words=30, seconds=0.1))

    times = [at for at, _ in stage.platform.messages["r1"].history]
    assert all(later - earlier >= 1.2 for earlier, later in pairwise(times[:-1]))
    assert len(times) <= 2 + 30 * 0.1 / 1.2 + 1


async def test_a_long_answer_goes_on_in_further_messages() -> None:
    stage = Stage(dataclasses.replace(ABLE, max_units=400))

    await stage.clock.run(stage.grow())

    assert len(stage.platform.messages) > 2
    assert stage.whole() == flat(ANSWER)
    *first, last = stage.platform.messages.values()
    assert last.content.footer == ANSWER.footer
    assert all(not message.content.footer and not message.content.status for message in first)


async def test_the_longest_answer_becomes_a_file() -> None:
    stage = Stage(dataclasses.replace(ABLE, max_units=200, max_parts=3))

    await stage.clock.run(stage.grow())

    first, last = stage.platform.messages.values()
    assert first.content.text.startswith("word0 and")
    assert last.content.file is not None
    assert last.content.file.text == ANSWER.text


async def test_an_answer_that_shrinks_takes_its_surplus_messages_back() -> None:
    stage = Stage(dataclasses.replace(ABLE, max_units=300))

    await stage.clock.run(stage.grow())
    await stage.reply.settle(MessageContent(text="Short."))

    assert stage.platform.texts() == ["Short."]
    assert stage.noted[-1] == ("r1",)


async def test_a_stream_takes_the_text_where_there_is_one() -> None:
    stage = Stage(SLACK_LIKE)

    await stage.clock.run(stage.grow())

    methods = [method for method, _ in stage.platform.calls]
    assert set(methods) == {"stream_start", "stream_append", "stream_stop"}
    assert stage.platform.messages["r1"].content == ANSWER


FAILURES: list[tuple[str, ChatError, bool]] = [
    ("stream_start", StreamRefused("no"), False),
    ("stream_start", RateLimited(30), False),
    ("stream_start", unreachable(), False),
    ("stream_start", unreachable(), True),
    ("stream_append", StreamGone("expired"), False),
    ("stream_append", unreachable(), False),
    ("stream_append", unreachable(), True),
    ("stream_append", RateLimited(7), False),
    ("stream_stop", StreamGone("expired"), False),
    ("stream_stop", unreachable(), True),
    ("edit", RateLimited(7), False),
    ("edit", EditRefused("too old"), False),
    ("edit", unreachable(), False),
    ("edit", unreachable(), True),
    ("edit", MessageTooLong("too long"), False),
    ("post", RateLimited(3), False),
    ("post", unreachable(), True),
    ("withdraw", RateLimited(3), False),
    ("withdraw", unreachable(), True),
]


@pytest.mark.parametrize(
    "failure", FAILURES, ids=[f"{method}-{type(error).__name__}-{after}" for method, error, after in FAILURES]
)
async def test_no_failure_loses_or_doubles_text(failure: tuple[str, ChatError, bool]) -> None:
    method, error, after = failure
    stage = Stage(SLACK_LIKE if method.startswith("stream") else dataclasses.replace(ABLE, max_units=300))
    stage.platform.fail(method, error, after=after)

    await stage.clock.run(stage.grow())

    assert stage.whole() == flat(ANSWER)
    assert stage.noted[-1] == tuple(stage.platform.messages)


@given(
    st.lists(st.tuples(st.sampled_from(FAILURES), st.integers(1, 2)), max_size=4),
    st.sampled_from([200, 500, 5_000]),
    st.booleans(),
)
@trying(max_examples=60)
def test_no_mix_of_failures_loses_or_doubles_text(
    failures: list[tuple[tuple[str, ChatError, bool], int]], limit: int, streams: bool
) -> None:
    async def run() -> None:
        rates = SLACK_LIKE.rates
        stage = Stage(Capabilities(max_units=limit, utf16=True, rates=rates, streams=streams, max_parts=50))
        for (method, error, after), times in failures:
            stage.platform.fail(
                method,
                error,
                times=1 if isinstance(error, MessageTooLong | PlatformUnreachable) else times,
                after=after,
            )
        await stage.clock.run(stage.grow())
        assert stage.whole() == flat(ANSWER)
        assert stage.noted[-1] == tuple(stage.platform.messages)

    asyncio.run(run())


async def test_a_text_that_is_taken_back_leaves_the_stream_for_edits() -> None:
    stage = Stage(SLACK_LIKE)

    async def work() -> None:
        async with stage.begun():
            for text in ("One thing. ", "One thing. And another. ", "Something else. "):
                stage.reply.show(MessageContent(text=text))
                await stage.clock.sleep(3)
        await stage.reply.settle(MessageContent(text="Something else."))

    await stage.clock.run(work())

    assert stage.platform.texts() == ["Something else."]


async def test_a_workspace_without_streams_is_not_asked_again() -> None:
    stage = Stage(SLACK_LIKE)
    stage.platform.fail("stream_start", StreamRefused("off"))

    await stage.clock.run(stage.grow())
    stage.reply = stage.another()
    await stage.clock.run(stage.grow())

    assert [method for method, _ in stage.platform.calls].count("stream_start") == 1


async def test_a_person_who_stops_the_stream_stops_the_run() -> None:
    stage = Stage(SLACK_LIKE)
    stage.platform.fail("stream_append", StreamStopped("stopped"))

    await stage.clock.run(stage.grow())

    assert stage.stops == 1


async def test_a_message_that_stays_as_it_is_is_gone_on_from() -> None:
    stage = Stage(dataclasses.replace(ABLE, max_units=5_000))
    async with stage.begun():
        stage.reply.show(MessageContent(text=ANSWER.text[:200]))
        await stage.clock.advance(5)
    stage.platform.fail("edit", EditRefused("too old"), times=9)
    stage.platform.fail("withdraw", EditRefused("not allowed"), times=9)

    await stage.reply.settle(ANSWER)

    assert stage.whole() == flat(ANSWER)
    assert len(stage.platform.messages) == 2


async def test_after_a_crash_the_noted_message_is_completed() -> None:
    stage = Stage(SLACK_LIKE)
    await stage.reply.begin(THINKING)

    after = stage.another(stage.reply.handles, recovered=True)
    await after.begin(THINKING)
    await after.settle(ANSWER)

    assert list(stage.platform.messages) == ["r1"]
    assert stage.platform.messages["r1"].content == ANSWER


@pytest.mark.parametrize("able", [ABLE, SLACK_LIKE])
async def test_after_a_crash_a_message_that_nobody_noted_is_found(able: Capabilities) -> None:
    stage = Stage(dataclasses.replace(able, max_units=5_000))
    await stage.reply.begin(THINKING)

    after = stage.another(recovered=True)
    await after.begin(THINKING)
    await after.settle(ANSWER)

    assert list(stage.platform.messages) == ["r1"]


async def test_a_platform_without_edits_gets_one_message() -> None:
    stage = Stage(dataclasses.replace(ABLE, edits=False, max_units=5_000))

    await stage.clock.run(stage.grow())

    assert stage.platform.hints == [THINKING.status]
    assert [content for _, content in stage.platform.messages["r1"].history] == [ANSWER]


async def test_a_place_that_takes_no_messages_says_so() -> None:
    stage = Stage()
    stage.platform.fail("post", PostRefused("citebot is no member of the channel."))

    with pytest.raises(PostRefused):
        await stage.reply.begin(THINKING)


async def test_a_platform_that_stays_away_is_given_up_after_some_tries() -> None:
    stage = Stage()
    await stage.reply.begin(THINKING)
    stage.platform.fail("edit", unreachable(), times=99)

    with pytest.raises(PlatformUnreachable):
        await stage.clock.run(stage.reply.settle(ANSWER))


async def test_a_withdrawn_reply_leaves_nothing() -> None:
    stage = Stage(dataclasses.replace(ABLE, max_units=300))
    await stage.clock.run(stage.grow())

    await stage.reply.withdraw()

    assert stage.platform.texts() == []
    assert stage.noted[-1] == ()


@pytest.mark.parametrize("streams", [True, False])
async def test_thirty_answers_at_once_are_never_refused_and_none_stalls(streams: bool) -> None:
    clock = FakeClock()
    able = dataclasses.replace(SLACK_LIKE, streams=streams)
    platform = FakePlatform(clock, able)
    transport = ReplyTransport.of(platform, clock)
    slots = asyncio.Semaphore(30 if streams else 8)
    gaps: list[float] = []

    async def note(handles: Sequence[MessageHandle]) -> None:
        return None

    async def one(number: int) -> None:
        place = dataclasses.replace(PLACE, channel=f"C{number}")
        reply = Reply(transport, place, nonce=f"n{number}", note=note)
        await reply.begin(THINKING)
        async with slots:
            began = clock.now()
            async with reply.keep_growing():
                for words in range(1, 61):
                    reply.show(
                        MessageContent(text="".join(f"word{word} " for word in range(words)), status="Writing …")
                    )
                    await clock.sleep(0.5)
            ended = clock.now()
            await reply.settle(MessageContent(text="".join(f"word{word} " for word in range(60)).rstrip()))
        times = [at for at, _ in platform.messages[reply.handles[0].id].history if at >= began]
        gaps.extend(later - earlier for earlier, later in pairwise([began, *times]))
        gaps.append(clock.now() - ended)

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(30):
                group.create_task(one(number))

    await clock.run(all_of_them())

    assert platform.refusals == 0
    assert max(gaps) <= 15
    assert len(platform.messages) == 30
