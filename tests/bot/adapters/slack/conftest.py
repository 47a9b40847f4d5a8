"""A workspace of the fake Slack with citebot in it, where anybody may reindex."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.access import AccessPolicy
from bot.conversations.assembly import ChatPolicy
from tests.bot.slack_worlds import Mode, SlackWorld
from tests.bot.worlds import HOSTS
from tests.fakes.slack import FakeSlack

# For the few tests that an HTTP request could fail where a socket's envelope does not.
IN_BOTH_MODES = pytest.mark.parametrize("world", ["socket", "http"], indirect=True)


@pytest_asyncio.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SlackWorld]:
    """Ann and Bob in a channel; in Socket Mode unless a test says otherwise."""
    policy = ChatPolicy(hosts=HOSTS, access=AccessPolicy(reindex=("*",)))
    mode: Mode = getattr(request, "param", "socket")
    async with (
        FakeSlack() as fake,
        SlackWorld(fake, tmp_path / "inbox.sqlite", mode=mode, policy=policy).running() as made,
    ):
        yield made
