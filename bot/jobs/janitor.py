"""Frees what dead workers held: their jobs are queued again, and what nobody needs any more is deleted."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from bot.jobs.job_queue import JobQueue, JobRequest

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection

MAX_WORKER_DEATHS = 5  # a job whose workers died so often is given up; the inbox tells anyone who asked
KEEP_HOURS = 1

# A lost job is one that a living worker was given, and has never heard of: the connection broke at that moment.
_STALLED = """
SELECT job.id, job.queue_name, job.args, job.lock, job.queueing_lock, job.priority
    FROM procrastinate_jobs job LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
    WHERE job.status = 'doing' AND NOT job.id = ANY(%(in_hand)s) AND (worker.id IS NULL OR job.id = ANY(%(lost)s)
        OR worker.last_heartbeat < clock_timestamp() - make_interval(secs => %(stalled)s))
    FOR UPDATE OF job SKIP LOCKED"""
_ONE = """
SELECT id, queue_name, args, lock, queueing_lock, priority FROM procrastinate_jobs
    WHERE id = %(id)s AND status = 'doing' FOR UPDATE"""
_HELD = "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = %(worker_id)s"
_FINISH = "SELECT procrastinate_finish_job_v1(%s, 'failed', false)"
_MAKE_FULL = """
UPDATE procrastinate_jobs SET args = jsonb_set(args, '{full}', 'true')
    WHERE queueing_lock = %s AND status = 'todo'"""
_DELETE_OLD = """
WITH old AS (
    DELETE FROM procrastinate_jobs WHERE id IN (
        SELECT job.id FROM procrastinate_jobs job WHERE job.status NOT IN ('todo', 'doing') AND NOT EXISTS (
            SELECT 1 FROM procrastinate_events event
                WHERE event.job_id = job.id AND event.at > now() - make_interval(hours => %(hours)s))
        FOR UPDATE SKIP LOCKED)
    RETURNING id)
SELECT count(*) FROM old"""

log = logging.getLogger(__name__)


class Janitor:
    """Looks after the jobs of all workers, in every process that works.

    Nothing is retried in place: where another job of the same key waits, Postgres would refuse that, and the lock of
    the conversation would stay shut for ever.
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._missing: set[int] = set()  # given to this process, and not in hand when that was looked at last

    async def move_stalled(self, *, in_hand: Collection[int], worker_id: int | None) -> int:
        """Write the jobs of dead workers again, and return how many; `in_hand` are those that this worker is at."""
        held = {job_id for (job_id,) in await self._queue.fetch(_HELD, {"worker_id": worker_id})}
        missing = held - set(in_hand)
        lost, self._missing = missing & self._missing, missing
        values = {"in_hand": [*in_hand], "lost": [*lost], "stalled": self._queue.times.stalled}

        async def move_all(connection: AsyncConnection[Any]) -> int:
            rows = await (await connection.execute(_STALLED, values)).fetchall()
            for row in rows:
                await self._move(connection, row, by_death=True)
            return len(rows)

        return await self._queue.run(move_all)

    async def put_back(self, job_id: int) -> None:
        """Write a job again whose worker was interrupted, because it shuts down in order."""

        async def move(connection: AsyncConnection[Any]) -> None:
            for row in await (await connection.execute(_ONE, {"id": job_id})).fetchall():
                await self._move(connection, row, by_death=False)

        await self._queue.run(move)

    async def delete_old(self) -> int:
        """Delete the jobs that ended hours ago, and return how many."""
        ((count,),) = await self._queue.fetch(_DELETE_OLD, {"hours": KEEP_HOURS})
        return int(count)

    async def _move(self, connection: AsyncConnection[Any], row: tuple[Any, ...], *, by_death: bool) -> None:
        """End a job as failed and write it again, before the others of its lock, in one transaction."""
        job_id, queue, args, lock, key, priority = row
        await connection.execute(_FINISH, (job_id,))
        deaths = int(args.get("deaths", 0)) + by_death
        if deaths >= MAX_WORKER_DEATHS:
            log.error("job %d (%s %s) is given up: its workers died %d times", job_id, queue, args, deaths)
            return
        # The odd priorities are for those that were interrupted: they have waited longest.
        request = JobRequest(queue=queue, args={**args, "deaths": deaths}, lock=lock, key=key, priority=priority | 1)
        if by_death:
            log.warning("job %d (%s %s) is taken from a worker that is gone", job_id, queue, args)
        if not await self._queue.add(request, connection) and args.get("full"):
            await connection.execute(_MAKE_FULL, (key,))
