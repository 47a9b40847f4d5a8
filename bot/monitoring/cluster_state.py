"""Reads the state of a cluster: its waiting messages, the holders of leases, and this process's cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from agent import Database
from indexer import IndexerError

if TYPE_CHECKING:
    from agent import PoolLoad
    from bot.repositories.segments import IndexLag, SharedSegments
    from indexer import CacheCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheState:
    """The published indexes on this disk: how often they were wanted, their bytes, and which of them are behind."""

    counts: CacheCounts
    disk_bytes: int
    lags: Sequence[IndexLag]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterState:
    """The messages that no process is at, the age of the oldest in seconds, and the holders of leases by name.

    `held` are the leases of this process, `pools` its connections to Postgres by what they are for. There is a cache
    where it answers from published indexes.
    """

    role: str
    waiting: int
    oldest: float
    holders: Mapping[str, str]
    held: frozenset[str]
    pools: Mapping[str, PoolLoad] = field(default_factory=dict)
    cache: CacheState | None = None

    def record(self) -> dict[str, Any]:
        """Describe it to a probe."""
        record: dict[str, Any] = {
            "role": self.role,
            "waiting": self.waiting,
            "oldest_seconds": round(self.oldest, 1),
            "leases": dict(self.holders),
            "held": sorted(self.held),
            "pools": {name: asdict(load) for name, load in self.pools.items()},
        }
        if self.cache is not None:
            record["cache_bytes"] = self.cache.disk_bytes
            record["lags"] = [asdict(lag) for lag in self.cache.lags]
        return record


async def read_cluster_state(
    database: Database,
    *,
    role: str,
    held: frozenset[str],
    pools: Mapping[str, PoolLoad] | None = None,
    segments: SharedSegments | None = None,
) -> ClusterState:
    """Ask the database that the processes share; raises `InboxError`."""
    row = await database.row(
        "SELECT count(*), lease_clock() - min(received_at) FROM inbox "
        "WHERE state = 'received' OR (state = 'running' AND owner = '')"
    )
    waiting, age = row or (0, None)
    holders = await database.rows("SELECT name, owner FROM leases WHERE owner <> '' AND lease_until >= lease_clock()")
    return ClusterState(
        role=role,
        waiting=int(waiting),
        oldest=max(0.0, age or 0.0),
        holders={str(name): str(owner) for name, owner in holders},
        held=held,
        pools=pools or {},
        cache=await _read_cache(segments) if segments is not None else None,
    )


async def _read_cache(segments: SharedSegments) -> CacheState:
    """Read the state of the cache; which indexes are behind is left out where nobody can tell."""
    try:
        lags = await segments.measure_lags()
    except IndexerError:
        lags = []
    return CacheState(counts=segments.generations.counts, disk_bytes=await segments.measure_cache(), lags=lags)
