"""The fake Slack's streams grow, end and refuse as Slack's do, behind the SDK's own stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.models.messages.chunk import MarkdownTextChunk, PlanUpdateChunk, TaskUpdateChunk
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import Clock, FakeSlack
from tests.fakes.slack_clients import app_of, by_socket, client_of, refusal, section


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack(clock=Clock(frozen=True)) as slack:
        yield slack


@pytest.fixture
def client(fake: FakeSlack) -> AsyncWebClient:
    return client_of(fake)


class Asked:
    """A question in a channel, and the arguments of a stream below it."""

    def __init__(self, channel: str, user: str, root: str) -> None:
        self.channel, self.user, self.root = channel, user, root

    @property
    def recipient(self) -> dict[str, str]:
        return {"recipient_user_id": self.user, "recipient_team_id": "T0HOME"}

    @property
    def place(self) -> dict[str, Any]:
        return {"channel": self.channel, "thread_ts": self.root, **self.recipient}


@pytest.fixture
async def asked(fake: FakeSlack) -> Asked:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    return Asked(channel, ada, await fake.mention(channel, ada, "how?"))


async def test_a_stream_grows_in_one_message(fake: FakeSlack, client: AsyncWebClient, asked: Asked) -> None:
    stream = await client.chat_stream(buffer_size=1, **asked.place)
    await stream.append(markdown_text="Hello ")
    assert fake.answers(asked.channel)[0].streaming
    task = TaskUpdateChunk(id="t1", title="Searching", status="complete")
    await stream.append(markdown_text="world", chunks=[task, PlanUpdateChunk(title="Two steps")])
    await stream.stop(markdown_text="!", blocks=[section("sources")])

    answer = fake.thread(asked.channel, asked.root)[1]
    assert (answer.text, answer.streaming, answer.edits) == ("Hello world!\nsources", False, 0)
    assert answer.versions == ("Hello ", "Hello world", "Hello world!\nsources")
    assert (answer.tasks, answer.plan) == ({"Searching": "complete"}, "Two steps")


async def test_bolt_streams_into_the_thread_of_a_mention(fake: FakeSlack) -> None:
    app = app_of(fake)

    @app.event("app_mention")
    async def reply(say_stream: Any, set_status: Any) -> None:
        await set_status("reads")
        stream = await say_stream()
        await stream.append(markdown_text="answer")
        await stream.stop()

    @app.event("message")
    async def ignore() -> None:
        pass

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with by_socket(fake, app):
        ts = await fake.mention(channel, ada, "how?")
        await fake.until(lambda: [each.text for each in fake.answers(channel, ts) if not each.streaming] == ["answer"])

    assert fake.calls_of("assistant.threads.setStatus")[0].args["status"] == "reads"
    assert fake.calls_of("chat.startStream")[0].args["recipient_user_id"] == ada


@pytest.mark.parametrize("missing", ["recipient_team_id", "recipient_user_id"])
async def test_a_stream_in_a_channel_needs_its_recipient(client: AsyncWebClient, asked: Asked, missing: str) -> None:
    place = {name: value for name, value in asked.place.items() if name != missing}

    assert await refusal(client.api_call("chat.startStream", json=place)) == f"missing_{missing}"


async def test_a_stream_in_a_direct_conversation_needs_none(fake: FakeSlack, client: AsyncWebClient) -> None:
    ada = fake.add_user("ada")
    root = await fake.dm(ada, "hello")
    await client.chat_startStream(channel=fake.dm_channel(ada), thread_ts=root, markdown_text="hi")

    assert fake.thread(fake.dm_channel(ada), root)[1].text == "hi"


async def test_a_stream_ends_after_five_minutes_and_can_then_be_updated(
    fake: FakeSlack, client: AsyncWebClient, asked: Asked
) -> None:
    ts = str((await client.chat_startStream(markdown_text="a", **asked.place))["ts"])
    await client.chat_appendStream(channel=asked.channel, ts=ts, markdown_text="b")
    assert await refusal(client.chat_update(channel=asked.channel, ts=ts, text="x")) == "streaming_state_conflict"
    fake.clock.advance(300)
    late = client.chat_appendStream(channel=asked.channel, ts=ts, markdown_text="c")
    assert await refusal(late) == "message_not_in_streaming_state"
    stop = client.chat_stopStream(channel=asked.channel, ts=ts)
    assert await refusal(stop) == "message_not_in_streaming_state"
    await client.chat_update(channel=asked.channel, ts=ts, markdown_text="abc")

    answer = fake.thread(asked.channel, asked.root)[1]
    assert (answer.text, answer.streaming, answer.edits) == ("abc", False, 1)


async def test_an_idle_limit_and_an_order_end_streams_too(
    fake: FakeSlack, client: AsyncWebClient, asked: Asked
) -> None:
    fake.streaming.idle = 30
    idle = await client.chat_startStream(markdown_text="a", **asked.place)
    fake.clock.advance(30)
    ended = await client.chat_startStream(markdown_text="b", **asked.place)
    fake.expire_streams()

    for ts in (str(idle["ts"]), str(ended["ts"])):
        append = client.chat_appendStream(channel=asked.channel, ts=ts, markdown_text="c")
        assert await refusal(append) == "message_not_in_streaming_state"
    assert [each.text for each in fake.answers(asked.channel)] == ["a", "b"]


async def test_the_stop_button_ends_the_stream_and_tells_the_app(
    fake: FakeSlack, client: AsyncWebClient, asked: Asked
) -> None:
    ts = str((await client.chat_startStream(markdown_text="a", **asked.place))["ts"])
    await fake.stop_session(asked.channel, asked.root, asked.user)

    append = client.chat_appendStream(channel=asked.channel, ts=ts, markdown_text="b")
    assert await refusal(append) == "stopped_by_user"
    event = fake.sent("agent_session_stopped")[0].payload["event"]
    assert (event["streaming_message_ts"], event["thread_ts"]) == ([ts], asked.root)


@pytest.mark.parametrize("error", ["unknown_method", "feature_not_enabled", "method_deprecated"])
async def test_a_workspace_may_not_offer_streams(
    fake: FakeSlack, client: AsyncWebClient, asked: Asked, error: str
) -> None:
    fake.streaming.refusal = error

    assert await refusal(client.chat_startStream(**asked.place)) == error


async def test_a_stream_can_be_refused_in_the_middle(fake: FakeSlack, client: AsyncWebClient, asked: Asked) -> None:
    ts = str((await client.chat_startStream(markdown_text="a", **asked.place))["ts"])
    fake.streaming.refusal = "feature_not_enabled"
    append = client.chat_appendStream(channel=asked.channel, ts=ts, markdown_text="b")

    assert await refusal(append) == "feature_not_enabled"
    assert fake.answers(asked.channel)[0].text == "a"


async def test_chunks_are_checked(client: AsyncWebClient, asked: Asked) -> None:
    def start(*chunks: Any) -> Any:
        return client.chat_startStream(chunks=chunks, **asked.place)

    assert await refusal(start({"type": "song"})) == "invalid_chunks"
    assert await refusal(start({"type": "task_update", "id": "1", "title": "x", "status": "odd"})) == "invalid_chunks"
    assert await refusal(start(MarkdownTextChunk(text="x" * 12_001))) == "msg_too_long"
    ts = str((await client.chat_startStream(**asked.place))["ts"])
    assert await refusal(client.chat_appendStream(channel=asked.channel, ts=ts)) == "no_text"


async def test_twenty_streams_may_start_in_a_minute(fake: FakeSlack, client: AsyncWebClient, asked: Asked) -> None:
    for _ in range(20):
        await client.chat_startStream(**asked.place)
    with pytest.raises(SlackApiError) as refused:
        await client.chat_startStream(**asked.place)

    assert refused.value.response.headers["Retry-After"] == "60"
