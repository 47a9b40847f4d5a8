"""The promises of the conversation core, kept in Slack: in both modes, with streams and without."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from bot.adapters.slack.platform import Streaming
from tests.bot.contract import CONTRACT, World
from tests.bot.slack_worlds import Mode, SlackWorld
from tests.fakes.slack import FakeSlack

WAYS: dict[str, tuple[Mode, Streaming, bool]] = {
    "socket-streams": ("socket", "auto", False),
    "http-edits": ("http", "off", False),
    "front-and-answerer": ("socket", "auto", True),
}


@pytest_asyncio.fixture(params=WAYS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    mode, streaming, is_split = WAYS[request.param]
    async with FakeSlack() as fake:
        made = SlackWorld(fake, tmp_path / "inbox.sqlite", mode=mode, streaming=streaming)
        made.is_split = is_split
        await made.begin()
        yield made
        await made.end()


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_in_slack(world: World, promise: Callable[[World], Awaitable[None]]) -> None:
    await promise(world)
