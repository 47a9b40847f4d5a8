"""Platforms that come, stay away, refuse and are lost, beside others: what is said of them, and what ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from bot.access import AccessPolicy
from bot.clock import Clock
from bot.conversations.assembly import ChatPolicy, open_conversations
from bot.conversations.dispatcher import Conversations
from bot.errors import BotError, PlatformUnreachable, PostRefused, RateLimited, SettingsError
from bot.http.server import LatePostRoutes
from bot.monitoring.health import Health
from bot.serving.platforms import PlatformConnection, PlatformContext, PlatformFactory, PlatformSupervisor
from bot.storage.database import open_database
from bot.tasks import run_in_background
from tests.bot.chat import message
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.clock import FakeClock
from tests.fakes.platform import FakePlatform
from tests.waiting import expect, wait_until

ANSWER = "Answer to: where is send?"
NO_TOKEN = "The token is refused. Set another one."


class FakeSite:
    """A platform that lets citebot in or not. What `trouble` raises comes of each try, of `loss` once it is heard."""

    def __init__(self, clock: FakeClock) -> None:
        self.platform = FakePlatform(clock)
        self.tries = 0
        self.trouble: BotError | None = None
        self.loss: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gateway = asyncio.Event()
        self.gateway.set()
        self.at_gateway = False  # this far it has come

    @asynccontextmanager
    async def open(self, _: Clock) -> AsyncIterator[PlatformConnection]:
        self.tries += 1
        if self.trouble is not None:
            raise self.trouble
        yield PlatformConnection(platform=self.platform, where="the fake", unready=self._unready, hear=self._hear)

    @asynccontextmanager
    async def _hear(self, _: PlatformContext) -> AsyncIterator[None]:
        async with run_in_background(self._lost()):
            self.at_gateway = True
            await self.gateway.wait()
            yield

    async def _lost(self) -> None:
        await self.loss

    async def _unready(self) -> str:
        return "" if self.gateway.is_set() else "The gateway is not connected."


class Town:
    """Two sites, and citebot on its way to both."""

    def __init__(self, core: Conversations, clock: FakeClock, agent: FakeAnswerer) -> None:
        self.core, self.clock, self.agent = core, clock, agent
        self.sites = {"fake": FakeSite(clock), "other": FakeSite(clock)}
        self.said: list[str] = []
        self.repositories = FakeRepositories()
        self.health = Health(list(self.sites), self.repositories, clock)
        self._presence: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        ear = PlatformContext(
            conversations=self.core, repositories=self.repositories, access=AccessPolicy(), server=LatePostRoutes(),
            count_loss=lambda _, __: None,
        )  # fmt: skip
        openings = {name: PlatformFactory(open=site.open) for name, site in self.sites.items()}
        presence = PlatformSupervisor(
            openings, ear, self.health, self.clock, say=self.said.append, greeting=" Ctrl-C ends it."
        )
        self._presence = asyncio.create_task(self._live(presence))
        await self.clock.settled()

    async def _live(self, presence: PlatformSupervisor) -> None:
        async with run_in_background(presence.run()):
            await asyncio.Event().wait()

    async def why(self, name: str) -> str:
        """Why a platform is missing."""
        await self.clock.advance(5)
        return (await self.health.check_readiness()).platforms[name]

    async def ended(self) -> None:
        """Wait until citebot ends; raises what it ends with."""
        assert self._presence is not None
        async with expect("self._presence.done()"):
            while not self._presence.done():
                await self.clock.advance(1)
        self._presence.result()

    async def end(self) -> None:
        assert self._presence is not None
        self._presence.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.ended()

    async def abandon(self) -> None:
        """End what a failed test has left running, while there still is a database."""
        if self._presence is not None and not self._presence.done():
            await self.end()


@pytest_asyncio.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    clock, agent = FakeClock(), FakeAnswerer()
    store, policy = open_database(tmp_path / "i.sqlite", lease_clock=clock.now), ChatPolicy()
    async with (
        open_conversations(agent, FakeRepositories(), store=store, policy=policy, clock=clock, owner="one") as core,
        core.open(),
    ):
        town = Town(core, clock, agent)
        try:
            yield town
        finally:
            await town.abandon()


async def test_each_platform_is_named_once_it_is_heard(town: Town) -> None:
    town.sites["other"].gateway.clear()
    await town.begin()
    await until(town, lambda: town.sites["other"].at_gateway and town.said == ["In the fake. Ctrl-C ends it."])
    assert await town.why("other") == "The gateway is not connected."

    town.sites["other"].gateway.set()
    await until(town, lambda: town.said == ["In the fake. Ctrl-C ends it.", "In the fake."])

    assert (await town.why("fake"), await town.why("other")) == ("", "")
    await town.end()


@pytest.mark.parametrize("trouble", [PlatformUnreachable("The other is away."), RateLimited(3.0)])
async def test_a_platform_that_is_away_is_tried_again_while_the_other_is_heard(
    town: Town, caplog: pytest.LogCaptureFixture, trouble: BotError
) -> None:
    town.sites["other"].trouble = trouble
    await town.begin()
    await until(town, lambda: len(town.said) == 1)
    assert await town.why("other") == str(trouble)
    assert f"{trouble} Trying again in " in caplog.text

    town.sites["other"].trouble = None
    await until(town, lambda: len(town.said) == 2)

    assert await town.why("other") == ""
    await town.end()


async def test_a_platform_that_asks_to_wait_is_left_alone_for_so_long(town: Town) -> None:
    other = town.sites["other"]
    other.trouble = RateLimited(10_000.0)
    await town.begin()
    await until(town, lambda: len(town.said) == 1 and other.tries == 1)
    await town.clock.advance(1_000)
    assert other.tries == 1

    other.trouble = None
    await town.clock.advance(20_000)
    await until(town, lambda: len(town.said) == 2)
    await town.end()


async def test_what_is_refused_at_the_start_ends_everything(town: Town) -> None:
    town.sites["other"].trouble = SettingsError(NO_TOKEN)
    await town.begin()

    with pytest.raises(SettingsError, match="Set another one"):
        await town.ended()


@pytest.mark.parametrize("late", [False, True], ids=["once heard", "back from being away"])
async def test_what_is_refused_later_is_lost_alone(town: Town, caplog: pytest.LogCaptureFixture, late: bool) -> None:
    other = town.sites["other"]
    other.trouble = PlatformUnreachable("The other is away.") if late else None
    await town.begin()
    await until(town, lambda: len(town.said) == 2 - late)
    if late:
        other.trouble = PostRefused(NO_TOKEN)
    else:
        other.loss.set_exception(SettingsError(NO_TOKEN))
    await until(town, lambda: "Then start citebot again" in caplog.text)

    assert NO_TOKEN in await town.why("other")
    assert await town.why("fake") == ""
    assert [each.levelname for each in caplog.records][-1] == "ERROR"
    await town.end()


async def test_the_last_platform_to_refuse_ends_everything(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    await town.begin()
    await until(town, lambda: len(town.said) == 2)
    town.sites["other"].loss.set_exception(SettingsError("The other refuses."))
    await until(town, lambda: "The other refuses." in caplog.text)
    town.sites["fake"].loss.set_exception(SettingsError(NO_TOKEN))

    with pytest.raises(SettingsError, match="Set another one"):
        await town.ended()


async def test_an_answer_under_way_on_a_lost_platform_is_finished_by_who_comes_there_next(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    town.agent.gate = asyncio.Event()
    await town.begin()
    await until(town, lambda: len(town.said) == 2)
    await town.core.receive(message())
    await town.agent.begun.acquire()
    town.sites["fake"].loss.set_exception(SettingsError(NO_TOKEN))
    await until(town, lambda: NO_TOKEN in caplog.text)
    assert town.core.load.under_way == 0
    town.agent.gate.set()
    platform = town.sites["fake"].platform

    async with town.core.connect_platform("fake", platform):
        await until(town, lambda: [each.content.text for each in platform.messages.values()] == [ANSWER])

    assert len(town.agent.resumed) == 1
    await town.end()


async def until(town: Town, predicate: Callable[[], object]) -> None:
    """Let time pass until something is true, a second at each look: databases must keep up with it."""

    async def holds() -> object:
        await town.clock.advance(1)
        return predicate()

    await wait_until(holds, "what the test waits for")
