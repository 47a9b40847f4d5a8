"""Leases by name: what one process does for all of them, such as watching a repository, until it ends or is dead."""

from __future__ import annotations

from agent import Database


class LeaseStore:
    """The table `leases`; `owner` is the name of this process."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def take(self, name: str, seconds: float) -> int | None:
        """Take a lease that nobody holds, or this process, for so long; return its token, None if it is held.

        A token is greater than all before it, and worth nothing once there is another one.
        """
        row = await self._database.row(
            "INSERT INTO leases (name, owner, token, lease_until) VALUES (:name, :owner, 1, lease_clock() + :seconds) "
            "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = leases.token + 1, "
            "lease_until = lease_clock() + :seconds "
            "WHERE leases.owner = excluded.owner OR leases.lease_until < lease_clock() RETURNING token",
            {"name": name, "owner": self._owner, "seconds": seconds},
        )
        return int(row[0]) if row else None

    async def renew(self, name: str, token: int, seconds: float) -> bool:
        """Hold a lease for so long from now; False if another process has taken it meanwhile."""
        changed = await self._database.write(
            "UPDATE leases SET lease_until = lease_clock() + :seconds "
            "WHERE name = :name AND token = :token AND owner = :owner",
            {"name": name, "token": token, "owner": self._owner, "seconds": seconds},
        )
        return changed > 0

    async def release(self, name: str, token: int) -> None:
        """Give a lease back; one that another process has taken stays with that."""
        await self._database.write(
            "UPDATE leases SET owner = '', lease_until = 0 WHERE name = :name AND token = :token AND owner = :owner",
            {"name": name, "token": token, "owner": self._owner},
        )
