"""Slack's request URL under whatever anybody may send to it: nothing unsigned is parsed, nothing breaks it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.adapters.slack.endpoint import LARGEST
from bot.adapters.slack.parsing import FORM, is_well_formed, parse_body
from tests.bot.contract import settled
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.raw_http import Answer, Header, exchange, write_request
from tests.fakes.slack import FakeSlack

PATH = "/slack/events"
JSON_TYPE, FORM_TYPE = ("Content-Type", "application/json"), ("Content-Type", FORM)
SIGNATURE = ("X-Slack-Signature", "v0=" + "0" * 64)
DEEP = b'{"a":' * 100_000


@pytest_asyncio.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlackWorld]:
    monkeypatch.setattr("bot.http.server._UNREAD_SECONDS", 0.02)  # so that a test can refuse many bodies
    async with FakeSlack() as fake, SlackWorld(fake, tmp_path / "inbox.sqlite", mode="http").running() as made:
        yield made


@pytest.fixture(autouse=True)
def no_tracebacks(caplog: pytest.LogCaptureFixture) -> Any:
    """No request has an error or a traceback logged."""
    caplog.set_level(logging.INFO)
    yield
    assert not [each.getMessage() for each in caplog.records if each.exc_info or each.levelno >= logging.ERROR]


def at(seconds: float = 0) -> Header:
    return "X-Slack-Request-Timestamp", str(int(time.time() + seconds))


def sign(secret: str, body: bytes) -> Sequence[Header]:
    now = str(int(time.time()))
    digest = hmac.new(secret.encode(), b"v0:" + now.encode() + b":" + body, hashlib.sha256).hexdigest()
    return ("X-Slack-Request-Timestamp", now), ("X-Slack-Signature", f"v0={digest}")


async def post(world: SlackWorld, headers: Sequence[Header], body: bytes = b"", **more: Any) -> Answer:
    return await asyncio.to_thread(exchange, world.address, write_request("POST", PATH, headers, body, **more))


async def post_signed(world: SlackWorld, body: bytes, kind: Header = JSON_TYPE) -> Answer:
    return await post(world, [kind, *sign(world.fake.signing_secret, body)], body)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([FORM_TYPE], b"ssl_check=1"),
        ([JSON_TYPE], b'{"type": "url_verification", "challenge": "x"}'),
        ([at()], b"{}"),
        ([at(), SIGNATURE], b"{}"),
        ([at(301), SIGNATURE], b"{}"),
        ([at(), at(), SIGNATURE], b"{}"),
        ([at(), SIGNATURE, SIGNATURE], b"{}"),
        ([("X-Slack-Request-Timestamp", "now"), SIGNATURE], b"{}"),
        ([("X-Slack-Request-Timestamp", "١٧٠٠٠٠٠٠٠٠"), SIGNATURE], b"{}"),
        ([at(), ("X-Slack-Signature", "v0=" + "é" * 64)], b"{}"),
        ([at(), ("X-Slack-Signature", "v1=" + "0" * 64)], b"{}"),
    ],
)
async def test_who_does_not_know_the_secret_is_refused_and_learns_nothing(
    world: SlackWorld, headers: Sequence[Header], body: bytes
) -> None:
    answer = await post(world, headers, body)

    assert (answer.status, answer.body) == (401, b"")


@pytest.mark.parametrize("kind", ["gzip", "x-gzip"])
async def test_a_packed_body_is_not_unpacked(world: SlackWorld, kind: str) -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    headers = [JSON_TYPE, ("Content-Encoding", kind), *sign(world.fake.signing_secret, bomb)]

    assert (await post(world, headers, bomb)).status == 415


async def test_a_body_that_says_that_it_is_too_large_is_not_waited_for(world: SlackWorld) -> None:
    assert (await post(world, [JSON_TYPE, at(), SIGNATURE], length=LARGEST + 1)).status == 413


async def test_a_body_of_unknown_length_is_read_only_so_far(world: SlackWorld) -> None:
    chunks = b"".join(b"10000\r\n" + b"x" * 65_536 + b"\r\n" for _ in range(LARGEST // 65_536 + 2))
    headers = [JSON_TYPE, at(), SIGNATURE, ("Transfer-Encoding", "chunked")]
    request = write_request("POST", PATH, headers) + chunks

    assert (await asyncio.to_thread(exchange, world.address, request)).status in {413, 0}


async def test_a_body_that_does_not_come_is_given_up(world: SlackWorld) -> None:
    assert (await post(world, [JSON_TYPE, at(), SIGNATURE], b"{", length=2)).status == 408


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /slack/events HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 100_000,
    ],
)
async def test_what_is_no_request_of_slack_is_refused(world: SlackWorld, request_bytes: bytes) -> None:
    answer = await asyncio.to_thread(exchange, world.address, request_bytes)

    assert 400 <= answer.status < 500


@pytest.mark.parametrize("body", [b"", b"[]", DEEP, b"1" * 100_000])
async def test_a_signed_body_that_cannot_be_read_is_a_bad_request(world: SlackWorld, body: bytes) -> None:
    assert (await post_signed(world, body)).status == 400
    assert world.lost == ["malformed"]


@pytest.mark.parametrize("body", [b"", b"payload=[]", b"payload=" + DEEP, b"&".join([b"a=b"] * 200)])
async def test_a_signed_form_that_cannot_be_read_is_a_bad_request(world: SlackWorld, body: bytes) -> None:
    status = (await post_signed(world, body, FORM_TYPE)).status

    assert status == (400 if body else 404)


async def test_a_signed_body_of_another_kind_is_refused(world: SlackWorld) -> None:
    assert (await post_signed(world, b"{}", ("Content-Type", "text/plain"))).status == 415


def event(**fields: Any) -> dict[str, Any]:
    inner = {
        "type": "message",
        "channel": "C1",
        "channel_type": "im",
        "user": "U1",
        "text": "hi",
        "ts": "1700000000.0001",
    }
    return {"type": "event_callback", "event_id": "Ev1", "team_id": "T1", "event": inner | fields}


@pytest.mark.parametrize(
    "body",
    [
        {"event": None},
        event(ts=None) | {"event": {"type": "message"}, "authorizations": "x"},
        event(ts={"a": 1}),
        event(text="\ud800"),
        event(type="reaction_added", item={"type": "message", "ts": 7}),
        event(type="agent_session_stopped", streaming_message_ts=7),
        event(subtype="message_deleted", deleted_ts=7),
        {"type": "block_actions", "actions": [7]},
        {"command": "/citebot"},
    ],
)
async def test_a_signed_delivery_of_another_shape_is_a_bad_request(world: SlackWorld, body: Mapping[str, Any]) -> None:
    assert (await post_signed(world, json.dumps(body).encode())).status == 400


async def test_the_next_question_is_answered_after_all_that(world: SlackWorld) -> None:
    for body in (b"{", DEEP, b'{"event": []}'):
        await post_signed(world, body)
        await post(world, [JSON_TYPE], body)
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")


HEADER_VALUES = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=40)
NAMES = st.sampled_from([
    "X-Slack-Signature", "X-Slack-Request-Timestamp", "Content-Type", "Content-Encoding", "Content-Length",
    "Transfer-Encoding", "Expect", "Connection", "Upgrade", "Host", "X-Slack-Retry-Num", "Cookie", "X-Forwarded-For",
])  # fmt: skip
VALUES = HEADER_VALUES | st.sampled_from([
    "v0=" + "0" * 64, "gzip", "chunked", "100-continue", "upgrade", "websocket", "application/json", FORM, "0", "1",
    "close", "application/json; charset=utf-7", str(int(time.time())),
])  # fmt: skip
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
    | st.sampled_from(["event_callback", "message", "block_actions", "U1", "C1", "1700000000.0001"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([
            "type", "event", "ts", "user", "channel", "text", "thread_ts", "message", "previous_message", "item",
            "team", "authorizations", "actions", "container", "command", "user_id", "channel_id", "view", "subtype",
            "id", "bot_id", "channel_type", "action_id", "value", "response_url", "trigger_id", "enterprise",
            "callback_id",
        ]),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip
QUIETLY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def test_no_unsigned_request_is_more_than_refused(world: SlackWorld) -> None:
    @QUIETLY
    @given(headers=st.lists(st.tuples(NAMES, VALUES), max_size=6), body=st.binary(max_size=200))
    def refuse(headers: list[Header], body: bytes) -> None:
        seen = exchange(world.address, write_request("POST", PATH, headers, body))
        assert seen.status == 0 or 400 <= seen.status < 500 or seen.raw.startswith(b"HTTP/1.1 100 ")

    await asyncio.to_thread(refuse)


async def test_no_signed_delivery_breaks_anything(world: SlackWorld) -> None:
    @QUIETLY
    @given(
        body=st.dictionaries(st.sampled_from(["type", "event", "actions", "command", "user"]), JSON_VALUES, max_size=4)
    )
    def deliver(body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        form = urlencode({"payload": raw.decode()}).encode()
        for sent, kind in ((raw, JSON_TYPE), (form, FORM_TYPE)):
            headers = [kind, *sign(world.fake.signing_secret, sent)]
            assert exchange(world.address, write_request("POST", PATH, headers, sent)).status in {200, 400, 404}

    await asyncio.to_thread(deliver)


@given(
    text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")),
    kind=st.sampled_from(["application/json", FORM]),
)
def test_any_body_is_a_mapping_or_nothing(text: str, kind: str) -> None:
    found = parse_body(text, kind)

    assert found is None or is_well_formed(found) in {True, False}


async def test_events_that_slack_held_back_are_told(world: SlackWorld, caplog: pytest.LogCaptureFixture) -> None:
    body = {
        "type": "app_rate_limited",
        "token": "x",
        "team_id": "T1",
        "minute_rate_limited": 1518467820,
        "api_app_id": "A",
    }
    assert world.slack is not None
    assert world.slack.remark() == ""

    statuses = [(await post_signed(world, json.dumps(body).encode())).status for _ in range(2)]

    assert statuses == [200, 200]
    assert world.lost == ["rate_limited"] * 2
    assert "Slack held back events in 2 minutes of the last hour" in world.slack.remark()
    assert sum("held back" in each.message for each in caplog.records) == 1
    assert await world.slack.unready() == ""
    world.fake.clock.advance(3_601)
    assert world.slack.remark() == ""


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /slack/events HTTP/1.1\r\nHost: x\r\nX: ",
        write_request("POST", PATH, [at(), SIGNATURE], b"x" * 500_000, length=LARGEST),
    ],
    ids=["headers", "large bodies"],
)
async def test_people_are_answered_while_strangers_hold_all_connections(world: SlackWorld, sent: bytes) -> None:
    where = urlsplit(world.address)
    lines: list[socket.socket] = []

    def hold() -> None:
        lines.append(socket.create_connection((where.hostname, where.port), timeout=10))
        with suppress(OSError):
            lines[-1].sendall(sent)

    try:
        for answers in (1, 2, 3):
            for _ in range(80):
                await asyncio.to_thread(hold)
            await world.mention("where is send?")
            await world.fake.until(lambda: str(world.said()).count("Answer to: where is send?") == answers)  # noqa: B023
            assert (await post(world, [])).status == 401
    finally:
        for line in lines:
            line.close()
