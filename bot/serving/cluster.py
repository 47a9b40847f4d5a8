"""The duties of a process by its role, and its connection to the job queue and the leases of its cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from agent import Database, PoolLoad, PostgresDatabase
from bot.clock import Clock
from bot.errors import SettingsError
from bot.ports import AnswerJobs, RefreshJobs
from bot.repositories.segments import SharedSegments, open_segments
from bot.settings import Settings
from bot.storage.leases import Leases
from bot.storage.manifest_table import CHANNEL, ManifestTable

Role = Literal["all", "front", "answer", "index"]
NOT_SHARED = (
    "`--role {role}` is for several processes that share their work, and needs {missing} (docs/cluster.md). "
    "Set what is missing, or serve with all roles."
)
SHARED_ALONE = (
    "SEGMENTS_URL names an object store in which processes share indexes, which also needs DATABASE_URL, the address "
    "of the Postgres they share (docs/cluster.md). Set that as well, or unset SEGMENTS_URL."
)
_NEEDED = {
    "database_url": "DATABASE_URL, the address of the Postgres they share",
    "segments_url": "SEGMENTS_URL, the address of the object store with their indexes",
}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The parts shared by processes; a single process has none."""

    answers: AnswerJobs | None = None
    refreshes: RefreshJobs | None = None
    leases: Leases | None = None
    segments: SharedSegments | None = None
    pools: Mapping[str, Callable[[], PoolLoad]] = field(default_factory=dict)


@asynccontextmanager
async def open_cluster(settings: Settings, database: Database, owner: str, clock: Clock) -> AsyncIterator[Cluster]:
    """Connect to the shared services over the shared database; `owner` is the name of this process.

    Without an object store, processes share the answering, and each has its own indexes. Raises
    `InboxError`, or `SegmentsUnavailable`.
    """
    if settings.database_url is None:
        yield Cluster()
        return
    # With the extra `cluster` alone.
    from bot.jobs.job_queue import listen, open_job_queue
    from bot.jobs.queued_jobs import QueuedAnswerJobs, QueuedRefreshJobs

    async with AsyncExitStack() as stack:
        url = settings.database_url.get_secret_value()
        queue = await stack.enter_async_context(open_job_queue(url))
        pools = {"jobs": queue.measure_pool}
        if isinstance(database, PostgresDatabase):
            pools["messages"] = partial(PoolLoad.of, database.pool)
        leases = Leases(database, owner, clock)
        cluster = Cluster(answers=QueuedAnswerJobs(queue), leases=leases, pools=pools)
        if settings.segments_url is None:
            yield cluster
            return
        cache_bytes = int(settings.segments_cache_gb * 1e9)
        segments = open_segments(
            settings.segments_url,
            settings.home,
            ManifestTable(database),
            cache_bytes=cache_bytes,
            listen=partial(listen, url, CHANNEL),
        )
        refreshes = QueuedRefreshJobs(queue, leases)
        yield replace(cluster, refreshes=refreshes, segments=await stack.enter_async_context(segments))


@dataclass(frozen=True, kw_only=True, slots=True)
class Duties:
    """The duties of a process: to receive, to answer, to index."""

    takes_events: bool = False
    answers: bool = False
    indexes: bool = False

    @property
    def is_on_platforms(self) -> bool:
        """Whether it receives from platforms, or sends to them."""
        return self.takes_events or self.answers


DUTIES: Mapping[Role, Duties] = {
    "all": Duties(takes_events=True, answers=True, indexes=True),
    "front": Duties(takes_events=True),
    "answer": Duties(answers=True),
    "index": Duties(indexes=True),
}


def assign_duties(role: Role, settings: Settings) -> Duties:
    """Return the duties of a role; raises `SettingsError` if others could not do the rest."""
    missing = [meaning for name, meaning in _NEEDED.items() if getattr(settings, name) is None]
    if role != "all" and missing:
        raise SettingsError(NOT_SHARED.format(role=role, missing=", and ".join(missing)))
    if settings.segments_url is not None and settings.database_url is None:
        raise SettingsError(SHARED_ALONE)
    return DUTIES[role]
