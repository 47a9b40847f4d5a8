"""Connects a process to the job queue and the leases that the processes of one team share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from agent import Database, PoolLoad, PostgresDatabase
from bot.clock import Clock
from bot.ports import AnswerJobs, RefreshJobs
from bot.repositories.segments import SharedSegments, open_segments
from bot.settings import Settings
from bot.storage.leases import Leases
from bot.storage.manifest_table import CHANNEL, ManifestTable


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The parts that processes share; a process that is alone has none."""

    answers: AnswerJobs | None = None
    refreshes: RefreshJobs | None = None
    leases: Leases | None = None
    segments: SharedSegments | None = None
    pools: Mapping[str, Callable[[], PoolLoad]] = field(default_factory=dict)


@asynccontextmanager
async def open_cluster(settings: Settings, database: Database, owner: str, clock: Clock) -> AsyncIterator[Cluster]:
    """Connect to what is shared, over the database that is shared as well; `owner` is the name of this process.

    Without an object store, processes share the answering, and each has its own indexes. Raises `InboxError`, or
    `SegmentsUnavailable`.
    """
    if settings.database_url is None:
        yield Cluster()
        return
    # With the extra `cluster` alone.
    from bot.jobs.job_queue import open_job_queue
    from bot.jobs.notifications import listen
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
