"""The fake Slack limits rates and sizes, and fails on order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncConnectionErrorRetryHandler
from slack_sdk.http_retry.builtin_interval_calculators import FixedValueRetryIntervalCalculator
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import Clock, FakeSlack
from tests.fakes.slack_clients import client_of, refusal, section

JSON = dict[str, Any]


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack(clock=Clock(frozen=True)) as slack:
        slack.limits.enabled = False
        yield slack


@pytest.fixture
def client(fake: FakeSlack) -> AsyncWebClient:
    return client_of(fake)


async def test_a_channel_takes_one_post_a_second(fake: FakeSlack, client: AsyncWebClient) -> None:
    fake.limits.enabled = True
    channel, other = fake.add_channel("general"), fake.add_channel("other")
    await client.chat_postMessage(channel=channel, text="one")
    await client.chat_postMessage(channel=other, text="elsewhere")
    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel=channel, text="two")
    fake.clock.advance(1)
    await client.chat_postMessage(channel=channel, text="three")

    assert (refused.value.response.status_code, refused.value.response["error"]) == (429, "ratelimited")
    assert refused.value.response.headers["Retry-After"] == "1"
    assert [message.text for message in fake.messages(channel)] == ["one", "three"]


async def test_a_method_has_its_share_of_calls_in_a_minute(fake: FakeSlack, client: AsyncWebClient) -> None:
    fake.limits.enabled = True
    channel = fake.add_channel("general")
    ts = (await client.chat_postMessage(channel=channel, text="0"))["ts"]
    for number in range(50):
        await client.chat_update(channel=channel, ts=ts, text=str(number))
    assert await refusal(client.chat_update(channel=channel, ts=ts, text="50")) == "ratelimited"
    fake.clock.advance(60)
    await client.chat_update(channel=channel, ts=ts, text="51")

    assert [call.status for call in fake.calls_of("chat.update")] == [200] * 50 + [429, 200]
    assert fake.messages(channel)[0].edits == 51


LONG = "x" * 4001
TOO_MUCH: dict[str, tuple[JSON, str]] = {
    "long text in an update": ({"text": LONG}, "msg_too_long"),
    "long markdown": ({"markdown_text": "x" * 12_001}, "msg_too_long"),
    "both kinds of text": ({"markdown_text": "x", "text": "x"}, "markdown_text_conflict"),
    "nothing": ({}, "no_text"),
    "many blocks": ({"blocks": [section("x")] * 51}, "msg_blocks_too_many"),
    "blocks too long in all": ({"blocks": [section("x" * 3000) for _ in range(5)]}, "msg_blocks_too_long"),
    "a long section": ({"blocks": [section("x" * 3001)]}, "invalid_blocks"),
    "an empty section": ({"blocks": [section("")]}, "invalid_blocks"),
    "an unknown block": ({"blocks": [{"type": "poem"}]}, "invalid_blocks"),
    "two blocks of one id": ({"blocks": [section("x") | {"block_id": "a"}] * 2}, "invalid_blocks"),
    "no list of blocks": ({"blocks": "section"}, "invalid_blocks_format"),
    "metadata without a type": ({"text": "x", "metadata": {"event_payload": {}}}, "invalid_metadata_format"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
async def test_what_is_too_much_is_refused_by_name(fake: FakeSlack, client: AsyncWebClient, name: str) -> None:
    arguments, error = TOO_MUCH[name]
    channel = fake.add_channel("general")
    ts = (await client.chat_postMessage(channel=channel, text="hello"))["ts"]

    assert await refusal(client.api_call("chat.update", json={"channel": channel, "ts": ts, **arguments})) == error
    assert fake.messages(channel)[0].versions == ("hello",)


async def test_a_post_beyond_forty_thousand_characters_is_cut(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel = fake.add_channel("general")
    await client.chat_postMessage(channel=channel, text="x" * 40_001)

    assert len(fake.messages(channel)[0].text) == 40_000


async def test_ordered_faults_hit_the_calls_they_name(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel = fake.add_channel("general")
    fake.faults.error("chat.postMessage", "fatal_error", skip=1)
    fake.faults.http("chat.postMessage", 503)
    fake.faults.ratelimited("*", retry_after=7)

    async def post() -> str:
        try:
            await client.chat_postMessage(channel=channel, text="x")
        except SlackApiError as error:
            return f"{error.response.status_code} {error.response.headers.get('Retry-After', '')}".strip()
        return "posted"

    assert [await post() for _ in range(4)] == ["503", "200", "429 7", "posted"]
    assert [call.fault for call in fake.calls] == ["http", "error", "ratelimited", None]
    assert len(fake.messages(channel)) == 1


async def test_a_reset_after_the_effect_makes_a_repeated_post_double(fake: FakeSlack) -> None:
    channel = fake.add_channel("general")
    at_once = FixedValueRetryIntervalCalculator(0)
    quick = AsyncConnectionErrorRetryHandler(max_retry_count=1, interval_calculator=at_once)
    client = AsyncWebClient(token=fake.bot_token, base_url=fake.api_url, retry_handlers=[quick])
    fake.faults.reset("chat.postMessage")
    with pytest.raises(aiohttp.ClientError):
        await client_of(fake).chat_postMessage(channel=channel, text="lost")
    fake.faults.reset("chat.postMessage", after=True)
    await client.chat_postMessage(channel=channel, text="twice")

    assert [message.text for message in fake.messages(channel)] == ["twice", "twice"]


async def test_a_held_call_goes_on_when_it_is_released(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel = fake.add_channel("general")
    before, after = fake.faults.hang("chat.postMessage"), fake.faults.hang("chat.postMessage", after=True)
    posts = [asyncio.ensure_future(client.chat_postMessage(channel=channel, text=text)) for text in "ab"]
    await fake.until(lambda: before.waiting and after.waiting)
    held = len(fake.messages(channel))
    before.release()
    after.release()
    await asyncio.gather(*posts)

    assert (held, len(fake.messages(channel))) == (1, 2)


async def test_a_held_call_whose_caller_died_has_no_effect(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel = fake.add_channel("general")
    gate = fake.faults.hang("chat.postMessage")
    post = asyncio.ensure_future(client.chat_postMessage(channel=channel, text="x"))
    await fake.until(lambda: gate.waiting)
    post.cancel()
    with pytest.raises(asyncio.CancelledError):
        await post
    gate.release()
    await fake.until(lambda: not gate.waiting)
    await client.auth_test()

    assert fake.messages(channel) == []


async def test_waiting_in_vain_names_the_last_calls(fake: FakeSlack, client: AsyncWebClient) -> None:
    await client.auth_test()

    with pytest.raises(TimeoutError, match=r"still false after 0.05 s; the last calls: auth.test 200"):
        await fake.until(lambda: False, within=0.05)
