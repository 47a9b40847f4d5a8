"""Holds named leases for duties that one process at a time may have, such as receiving from a platform."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.clock import Clock
from bot.errors import InboxError
from bot.storage.leases import LeaseStore

LEASE_SECONDS = 15.0
RENEW_SECONDS = 4.0
LOOK_SECONDS = 1.0  # from one try to take a lease that another process holds to the next

log = logging.getLogger(__name__)


class SoleHolder:
    """Waits for leases, and renews what it holds. Without `leases` the process is alone, and holds what it asks for.

    `held` are the leases that this process has at the moment.
    """

    def __init__(self, leases: LeaseStore | None, clock: Clock) -> None:
        self.held: set[str] = set()
        self._leases = leases
        self._clock = clock

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[asyncio.Event]:
        """Hold a lease, once it is free; the event is set when it is lost. It is given back at the end."""
        lost = asyncio.Event()
        if self._leases is None:
            yield lost
            return
        token = await self._take(self._leases, name)
        self.held.add(name)
        renewing = asyncio.create_task(self._keep(self._leases, name, token, lost))
        try:
            yield lost
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
            self.held.discard(name)
            await self._give_back(self._leases, name, token)

    async def _take(self, leases: LeaseStore, name: str) -> int:
        while True:
            try:
                token = await leases.take(name, LEASE_SECONDS)
            except InboxError as error:
                log.warning("the lease of %s cannot be taken yet: %s", name, error)
            else:
                if token is not None:
                    return token
            await self._clock.sleep(LOOK_SECONDS)

    async def _keep(self, leases: LeaseStore, name: str, token: int, lost: asyncio.Event) -> None:
        """Renew a lease until it is lost: to another process, or because nobody can tell any more whose it is."""
        # The time that passes while the process is stopped counts, and a clock that is set does not.
        ends = time.monotonic() + LEASE_SECONDS
        while time.monotonic() < ends:
            await self._clock.sleep(RENEW_SECONDS)
            asked = time.monotonic()
            try:
                if not await leases.renew(name, token, LEASE_SECONDS):
                    break
            except InboxError as error:
                log.warning("the lease of %s was not renewed: %s", name, error)
            else:
                ends = asked + LEASE_SECONDS
        log.warning("the lease of %s is lost", name)
        lost.set()

    async def _give_back(self, leases: LeaseStore, name: str, token: int) -> None:
        """Let the next process take over at once; where that fails, the lease ends by itself."""
        try:
            await leases.release(name, token)
        except InboxError as error:
            log.warning("the lease of %s ends by itself: %s", name, error)
