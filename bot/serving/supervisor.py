"""Keeps citebot connected to its platforms: each is opened, served and closed by a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import TypeVar

from tenacity import wait_exponential

from bot.clock import Clock
from bot.errors import ChatError, SettingsError
from bot.monitoring.health import Health
from bot.serving.platforms import PlatformConnection, PlatformContext, PlatformFactory
from bot.storage.leases import Lease, Leases
from bot.tasks import retry_while_away

T = TypeVar("T")
Announce = Callable[[str], None]

LONGEST_PAUSE = 60.0
SENDS_ONLY = "This process answers; others receive."
STANDS_BY = "Another process receives at the moment; this one is on standby."

log = logging.getLogger(__name__)


class PlatformSupervisor:
    """Serves each platform separately, so that a failure of one delays no other.

    An unreachable platform is tried again without end. One that refuses citebot is not: a refusal at the first try is a
    mistake in the settings, which ends everything; a later one ends only that platform, unless no other is left. If
    several processes serve a platform, one of them at a time connects, and the others stand by. One that receives no
    events only sends.
    """

    def __init__(
        self,
        openings: Mapping[str, PlatformFactory],
        context: PlatformContext,
        health: Health,
        clock: Clock,
        *,
        say: Announce,
        greeting: str = "",
        leases: Leases | None = None,
        takes_events: bool = True,
    ) -> None:
        self._openings = openings
        self._context = context
        self._health = health
        self._clock = clock
        self._say = say
        self._greeting = greeting  # goes with the first announcement
        self._leases = leases
        self._takes_events = takes_events
        self._left = set(openings)  # those that did not refuse
        self._tried: set[str] = set()  # those whose first try is over

    async def run(self) -> None:
        """Serve people until this is cancelled; raises errors of platforms in a group."""
        async with asyncio.TaskGroup() as group:
            for name, opening in self._openings.items():
                group.create_task(self._serve_platform(name, opening))

    async def _serve_platform(self, name: str, opening: PlatformFactory) -> None:
        """Open a platform, continue with what was left there, and serve it for as long as it lets citebot in."""
        try:
            async with AsyncExitStack() as stack:
                connection = await self._open_with_retry(name, partial(opening.open, self._clock), stack)
                await stack.enter_async_context(self._context.conversations.connect_platform(name, connection.platform))
                if not self._takes_events:
                    self._stand_by(name, SENDS_ONLY)
                    self._announce(name, connection)
                    await asyncio.Event().wait()
                while True:
                    await self._receive(name, connection)
        except (SettingsError, ChatError) as error:
            self._left.discard(name)
            if name not in self._tried or not self._left:
                raise
            reason = f"{error} Then start citebot again: until then {name} is not served, and the others are."
            log.error("%s", reason)  # noqa: TRY400 - the sentence says everything
            self._health.set_waiting(name, reason)

    async def _receive(self, name: str, connection: PlatformConnection) -> None:
        """Receive messages until that is another process's to do."""
        async with AsyncExitStack() as stack:
            lease = Lease()
            if connection.is_dialled and self._leases is not None:
                self._stand_by(name, STANDS_BY)
                lease = await stack.enter_async_context(self._leases.hold(f"platform {name}"))
            # Before it receives anything it knows what it waits for.
            self._health.set_listening(name, connection.unready, connection.remark)
            await self._open_with_retry(name, partial(connection.hear, self._context), stack)
            self._health.set_listening(name, connection.unready, connection.remark)
            self._announce(name, connection)
            await lease.lost.wait()

    def _stand_by(self, name: str, remark: str) -> None:
        """Be ready without receiving anything."""

        async def find_nothing() -> str:
            return ""

        self._health.set_listening(name, find_nothing, lambda: remark)

    def _announce(self, name: str, connection: PlatformConnection) -> None:
        self._tried.add(name)
        self._say(f"In {connection.where}.{self._greeting}")
        self._greeting = ""

    async def _open_with_retry(
        self, name: str, opening: Callable[[], AbstractAsyncContextManager[T]], stack: AsyncExitStack
    ) -> T:
        """Open what needs a platform; while that is away, try again, no sooner than it asks for."""

        async def enter() -> T:
            return await stack.enter_async_context(opening())

        def report(error: Exception, wait: float) -> None:
            self._tried.add(name)
            self._health.set_waiting(name, str(error))
            log.warning("%s Trying again in %g seconds.", error, wait)

        retrying = retry_while_away(self._clock, wait=wait_exponential(max=LONGEST_PAUSE), report=report)
        return await retrying(enter)
