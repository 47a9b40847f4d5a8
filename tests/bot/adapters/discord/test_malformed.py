"""Malformed data from Discord's gateway: a bad event is skipped, and a bad frame leads to a new connection."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.adapters.discord.client import GatewayClient
from bot.adapters.discord.connection import ReconnectBackoff
from tests.bot.contract import settled
from tests.bot.discord_worlds import DiscordWorld
from tests.fakes.discord import FakeDiscord
from tests.fakes.discord.sessions import DISPATCH
from tests.waiting import expect

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("MESSAGE_CREATE", None),
        ("MESSAGE_CREATE", {"id": {}, "channel_id": "x", "author": 7, "content": None}),
        ("GUILD_CREATE", {"id": "77", "roles": [{}], "channels": 3, "members": None}),
        ("INTERACTION_CREATE", {"id": "1", "type": 99, "data": "none"}),
        ("MESSAGE_REACTION_ADD", {"emoji": None}),
    ],
)
async def test_an_event_that_cannot_be_read_is_skipped_and_the_next_one_heard(
    world: DiscordWorld, caplog: pytest.LogCaptureFixture, event: str, data: Any
) -> None:
    caplog.set_level(logging.INFO, logger="bot")
    world.fake.gateway.connections[-1].send(DISPATCH, data, name=event)
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    skipped = [each for each in caplog.records if "could not be read, and was skipped" in each.message]
    assert [(each.levelname, each.exc_info) for each in skipped] in ([("WARNING", None)], [("WARNING", False)])
    assert (len(world.fake.gateway.sessions), world.fake.gateway.sessions[-1].resumed) == (1, 0)


async def test_what_is_skipped_is_counted(world: DiscordWorld) -> None:
    assert world.discord is not None
    lost: list[str] = []
    world.discord._client.count_loss = lost.append
    for _ in range(3):
        world.fake.gateway.connections[-1].send(DISPATCH, {}, name="MESSAGE_CREATE")
    await world.mention("where is send?")
    await settled(world, "Answer to: where is send?")

    assert lost == ["malformed"] * 3


async def test_an_event_that_nobody_knows_is_nothing(world: DiscordWorld) -> None:
    world.fake.gateway.connections[-1].send(DISPATCH, {"some": "thing"}, name="NO_SUCH_EVENT")
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    assert len(world.fake.gateway.sessions) == 1


@pytest.mark.parametrize("op", [99, None, [0]])
async def test_an_opcode_that_nobody_knows_is_nothing(world: DiscordWorld, op: Any) -> None:
    world.fake.gateway.connections[-1].send(op, {"some": "thing"})
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    assert len(world.fake.gateway.sessions) == 1


@pytest.mark.parametrize(
    "frame",
    ["[" * 100_000, '{"op": 10, "d": null}', b"\xff\xfe\xfd",
     b"\x28\xb5\x2f\xfd" + b"\xff" * 40],
)  # fmt: skip
async def test_a_frame_that_cannot_be_read_has_the_connection_made_anew(
    world: DiscordWorld, caplog: pytest.LogCaptureFixture, frame: str | bytes
) -> None:
    gateway = world.fake.gateway
    socket = gateway.connections[-1].socket
    await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
    async with expect("len(gateway.sessions) >= 2"):
        while len(gateway.sessions) < 2:
            world.fake.clock.advance(1)
            await asyncio.sleep(0.01)
    await world.fake.connected()
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    assert not world.task.done()
    assert len(gateway.connections) == 1  # the other one was left


async def test_a_session_that_begins_with_nothing_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReconnectBackoff, "delay", lambda _: 0.01)
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        fake.gateway.empty_readies = 1
        beginning = asyncio.create_task(world.begin())
        async with expect("beginning.done()"):
            while not beginning.done():
                fake.clock.advance(1)
                await asyncio.wait({beginning}, timeout=0.01)
        beginning.result()
        await world.mention("where is send?")
        await settled(world, "Answer to: where is send?")
        await world.end()


def test_no_parser_of_events_raises_over_anything(caplog: pytest.LogCaptureFixture) -> None:
    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(data=JSON)
    def parse_everything(data: Any) -> None:
        for event, parse in client._connection.parsers.items():
            if event not in {"READY", "RESUMED"}:
                parse(data)

    async def run() -> GatewayClient:
        return GatewayClient(message_content=True, settle_seconds=0.0, identify_pause=0.0)

    caplog.set_level(logging.ERROR)
    client = asyncio.run(run())
    parse_everything()
