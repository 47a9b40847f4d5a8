"""A process that stood still while it posted takes back what another one, which has begun the reply again, has not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.conversations.opened_reply import open_reply
from bot.errors import MessageLost
from bot.messages import MessageContent
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from bot.storage.database import open_database
from bot.storage.inbox import LEASE_SECONDS, Inbox
from tests.bot.chat import message
from tests.fakes.clock import FakeClock
from tests.fakes.platform import ABLE, FakePlatform

THINKING = MessageContent(status="Thinking …")


class TwoProcesses:
    """The replies of two processes to one message: the first has stood still for longer than its lease."""

    def __init__(self, platform: FakePlatform, late: Reply, next_one: Reply) -> None:
        self.platform = platform
        self.late = late
        self.next_one = next_one

    def shown(self) -> set[str]:
        return set(self.platform.messages)


@pytest_asyncio.fixture
async def processes(tmp_path: Path) -> AsyncIterator[TwoProcesses]:
    clock = FakeClock()
    platform = FakePlatform(clock, ABLE)
    transport = ReplyTransport.of(platform, clock)
    async with open_database(tmp_path / "i.sqlite", lease_clock=clock.now) as database:
        here, there = Inbox(database, clock, "here"), Inbox(database, clock, "there")
        stored = await here.store(message(), "c")
        assert stored is not None
        first = await here.claim(stored.id)
        assert first is not None
        await clock.advance(LEASE_SECONDS + 1)
        await there.take_expired()
        second = await there.claim(stored.id)
        assert second is not None
        yield TwoProcesses(platform, open_reply(first, transport, here), open_reply(second, transport, there))


async def test_a_placeholder_that_is_posted_too_late_is_taken_back(processes: TwoProcesses) -> None:
    await processes.next_one.begin(THINKING)
    (known,) = processes.next_one.handles

    with pytest.raises(MessageLost):
        await processes.late.begin(THINKING)

    assert processes.shown() == {known.id}


async def test_what_the_next_process_may_be_about_to_find_stays(processes: TwoProcesses) -> None:
    with pytest.raises(MessageLost):
        await processes.late.begin(THINKING)
    await processes.next_one.begin(THINKING)

    assert processes.shown() == {handle.id for handle in processes.next_one.handles}
