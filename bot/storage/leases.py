"""Leases: one process at a time holds a message, a platform's connection or a refresh, until it ends or dies.

A lease is a few columns of a row: an owner, an end, and a token, the number of the claim. It expires by the clock of
the database. The token fences: a process that writes as the holder shows it, and is refused once another has claimed
the row, however late it wakes up. Messages have these columns in their own table (`message_states`), all other leases
have a row in the table `leases`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agent import Database
from bot.clock import Clock
from bot.errors import InboxError

LEASE_SECONDS = 15.0
LOOK_SECONDS = 1.0  # from one try to take a lease that another process holds to the next
_RENEWALS = 4  # in the time of a lease

# Of a lease in any table: the condition that anybody may take it, and what claiming, renewing and ending one write.
IS_FREE = "(owner = '' OR lease_until < lease_clock())"
RENEW = "lease_until = lease_clock() + :seconds"
CLAIM = f"owner = :owner, {RENEW}"
END = "owner = '', lease_until = 0"
# Of a row of this module's table, that a token is the newest.
IS_HELD = "EXISTS (SELECT 1 FROM leases WHERE name = %(lease)s AND token = %(token)s)"

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False)
class Lease:
    """A lease of this process; `lost` is set when another has it, or nobody can tell."""

    name: str = ""
    token: int = 0
    seconds: float = LEASE_SECONDS
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    _ends: float = 0.0

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have it yet.

        Time during which the process is paused counts, and changes of the clock do not.
        """
        return time.monotonic() < self._ends

    def prolong(self, asked_at: float) -> None:
        """Extend the lease from the time of its request, on the monotonic clock."""
        self._ends = asked_at + self.seconds


class Leases:
    """The table `leases`; `owner` is the name of this process, `held` are its present leases."""

    def __init__(self, database: Database, owner: str, clock: Clock) -> None:
        self.held: set[str] = set()
        self._database = database
        self._owner = owner
        self._clock = clock

    @asynccontextmanager
    async def hold(self, name: str, seconds: float = LEASE_SECONDS) -> AsyncIterator[Lease]:
        """Hold a lease, once it is free, and renew it; release it at the end."""
        lease = await self._wait_for(name, seconds)
        self.held.add(name)
        renewing = asyncio.create_task(self._keep(lease))
        try:
            yield lease
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
            self.held.discard(name)
            try:  # let the next process take over at once
                await self.release(lease)
            except InboxError as error:
                log.warning("the lease of %s ends by itself: %s", name, error)

    async def take(self, name: str, seconds: float = LEASE_SECONDS) -> Lease | None:
        """Take a lease that nobody else holds, for that long; None if it is held.

        Its token is greater than all before it, and invalid once there is another one.
        """
        asked_at = time.monotonic()
        row = await self._database.row(
            "INSERT INTO leases (name, owner, token, lease_until) VALUES (:name, :owner, 1, lease_clock() + :seconds) "  # noqa: S608 - constants
            f"ON CONFLICT (name) DO UPDATE SET {CLAIM}, token = leases.token + 1 "
            "WHERE leases.owner = excluded.owner OR leases.lease_until < lease_clock() RETURNING token",
            {"name": name, "owner": self._owner, "seconds": seconds},
        )
        if row is None:
            return None
        lease = Lease(name=name, token=int(row[0]), seconds=seconds)
        lease.prolong(asked_at)
        return lease

    async def renew(self, lease: Lease) -> bool:
        """Renew a lease; False if another process has taken it."""
        asked_at = time.monotonic()
        if not await self._change(RENEW, lease):
            return False
        lease.prolong(asked_at)
        return True

    async def release(self, lease: Lease) -> None:
        """Release a lease, unless another process has taken it."""
        await self._change(END, lease)

    async def _change(self, writes: str, lease: Lease) -> bool:
        sql = f"UPDATE leases SET {writes} WHERE name = :name AND token = :token AND owner = :owner"  # noqa: S608 - constants
        values = {"name": lease.name, "token": lease.token, "owner": self._owner, "seconds": lease.seconds}
        return await self._database.write(sql, values) > 0

    async def _wait_for(self, name: str, seconds: float) -> Lease:
        while True:
            try:
                if lease := await self.take(name, seconds):
                    return lease
            except InboxError as error:
                log.warning("the lease of %s cannot be taken yet: %s", name, error)
            await self._clock.sleep(LOOK_SECONDS)

    async def _keep(self, lease: Lease) -> None:
        """Renew a lease until it is lost."""
        while lease.is_sure:
            await self._clock.sleep(lease.seconds / _RENEWALS)
            try:
                if not await self.renew(lease):
                    break
            except InboxError as error:
                log.warning("the lease of %s was not renewed: %s", lease.name, error)
        log.warning("the lease of %s is lost", lease.name)
        lease.lost.set()
