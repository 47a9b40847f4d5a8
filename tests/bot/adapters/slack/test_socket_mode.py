"""Socket Mode under frames that nobody can read, and a Slack that is away while connections are opened."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.bot.contract import settled
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.slack import FakeSlack


def envelope(payload: Any, **more: Any) -> str:
    return json.dumps({"envelope_id": uuid.uuid4().hex, "type": "events_api", "payload": payload} | more)


FRAMES = [
    "{",
    "[" * 100_000,
    '{"envelope_id": "e", "type": "events_api"}',
    envelope({"event": None}),
    envelope({"type": "event_callback", "event": {"type": "message", "channel": [], "user": {}, "ts": 7}}),
    envelope({"command": "/citebot"}, type="slash_commands"),
    envelope({"type": "block_actions", "actions": [7]}, type="interactive"),
    envelope({"type": "event_callback", "event": {"type": "message", "text": "x" * 2_000_001}}),
]


@pytest.mark.parametrize("frame", FRAMES, ids=[str(number) for number in range(len(FRAMES))])
async def test_a_frame_that_cannot_be_read_is_skipped_and_the_next_one_heard(
    world: SlackWorld, caplog: pytest.LogCaptureFixture, frame: str
) -> None:
    (connection,) = world.fake.socket.connections
    await connection.socket.send_str(frame)
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    assert world.lost == ["malformed"]
    assert not [each for each in caplog.records if each.exc_info or each.levelno >= logging.ERROR]
    assert world.fake.socket.connections == [connection]


async def test_an_envelope_that_cannot_be_read_is_acknowledged_so_that_it_does_not_come_again(
    world: SlackWorld,
) -> None:
    (connection,) = world.fake.socket.connections
    await connection.socket.send_str(envelope([1], envelope_id="mine"))

    await world.fake.until(lambda: {"envelope_id": "mine"} in connection.received)


async def test_a_frame_that_is_huge_ends_the_connection_and_the_next_one_hears(
    world: SlackWorld, caplog: pytest.LogCaptureFixture
) -> None:
    (connection,) = world.fake.socket.connections
    with suppress(ConnectionError):
        await connection.socket.send_str("x" * 5_000_000)
    await world.fake.until(lambda: world.fake.socket.opened == 2 and world.fake.socket.connections)
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    assert not [each for each in caplog.records if each.exc_info]


async def test_events_that_slack_held_back_are_told(world: SlackWorld) -> None:
    (connection,) = world.fake.socket.connections
    body = {"type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1518467820}
    await connection.socket.send_str(envelope(body, envelope_id="mine"))
    await world.fake.until(lambda: {"envelope_id": "mine"} in connection.received)

    assert world.lost == ["rate_limited"]
    assert world.slack is not None
    assert "Slack held back events" in world.slack.remark()


@pytest.mark.parametrize("times", [1, 2])
async def test_an_address_is_asked_for_again_soon_where_slack_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, times: int
) -> None:
    async with FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "inbox.sqlite")
        fake.faults.http("apps.connections.open", 503, skip=1, times=times)
        beginning = asyncio.create_task(world.begin())
        while not beginning.done():
            fake.clock.advance(1)
            await asyncio.wait({beginning}, timeout=0.02)
        beginning.result()
        await world.end()

    assert not [each for each in caplog.records if each.exc_info]


async def test_an_address_that_was_refused_is_not_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with FakeSlack() as fake:
        fake.socket.refusals = 2
        async with SlackWorld(fake, tmp_path / "inbox.sqlite").running() as world:
            await world.mention("where is send?")
            await settled(world, "Answer to: where is send?")

        assert len(fake.calls_of("apps.connections.open")) == 4  # one to see whether the token is good
    told = [each.getMessage() for each in caplog.records if "cannot connect to Slack" in each.getMessage()]
    assert told == ["cannot connect to Slack (WSServerHandshakeError); trying again"] * 2
    assert not [each for each in caplog.records if each.exc_info]


async def test_a_slack_on_this_machine_is_reached_without_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with FakeSlack() as fake, SlackWorld(fake, tmp_path / "inbox.sqlite").running() as world:
        await world.mention("where is send?")
        await settled(world, "Answer to: where is send?")
