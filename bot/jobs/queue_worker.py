"""A worker on one kind of jobs in Postgres, restarted after any failure, with a janitor."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback
from psycopg.errors import RaiseException

from bot.errors import InboxError
from bot.jobs.job_queue import JobQueue, JobRequest, explain_queue_error
from bot.tasks import run_in_background

if TYPE_CHECKING:
    from procrastinate import App
    from psycopg import AsyncConnection

log = logging.getLogger(__name__)

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


class Janitor:
    """Looks after the jobs of all workers, in every working process.

    Nothing is retried in place: if another job with the same key waits, Postgres would refuse that,
    and the lock of the conversation would stay closed forever.
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._missing: set[int] = set()  # given to this process, and not in hand when that was looked at last

    async def move_stalled(self, *, in_hand: Collection[int], worker_id: int | None) -> int:
        """Requeue the jobs of dead workers, and return their number; `in_hand` are this worker's own."""
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
        """Requeue a job whose worker is shutting down."""

        async def move(connection: AsyncConnection[Any]) -> None:
            for row in await (await connection.execute(_ONE, {"id": job_id})).fetchall():
                await self._move(connection, row, by_death=False)

        await self._queue.run(move)

    async def delete_old(self) -> int:
        """Delete the jobs that ended hours ago, and return their number."""
        ((count,),) = await self._queue.fetch(_DELETE_OLD, {"hours": KEEP_HOURS})
        return int(count)

    async def _move(self, connection: AsyncConnection[Any], row: tuple[Any, ...], *, by_death: bool) -> None:
        """End a job as failed and requeue it before the others of its lock, in one transaction."""
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


_ANSWER_SECONDS = 15.0  # in which Postgres has to answer
_PAUSE_SECONDS = 1.0
# Anyone who was taken for dead is alive again with this: its jobs were moved meanwhile, but it may take new ones.
_HEARTBEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE
    VALUES (%(worker_id)s, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET last_heartbeat = excluded.last_heartbeat"""


class PatientJobManager(JobManager):
    """Treats an outage as a time without jobs, and records the end of a job as soon as possible.

    By default, procrastinate then ends a worker once all running jobs have ended: minutes in which
    nothing begins. `in_hand` are this worker's jobs. After `begin_to_end`, nothing is retried.
    """

    def __init__(self, connector: BaseAsyncConnector, janitor: Janitor) -> None:
        super().__init__(connector)
        self.in_hand: set[int] = set()
        self.worker_id: int | None = None
        self._janitor = janitor
        self._is_away = False
        self._is_ending = False
        self._is_told = False

    def begin_to_end(self) -> None:
        """Stop retrying from now on."""
        self._is_ending = True

    async def register_worker(self) -> int:
        """Set the worker's number."""
        self.worker_id = await super().register_worker()
        return self.worker_id

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Take the next job; None if there is none, or Postgres is down.

        The worker forgets a notification that comes while it looks for a job. Its job may have been
        added after Postgres had looked, so look again.
        """
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                job = None
                self._is_told = True
                while job is None and self._is_told:
                    self._is_told = False
                    job = await super().fetch_job(queues, worker_id)
        except (ConnectorException, TimeoutError) as error:
            self._note_outage(error)
            return None
        if self._is_away:
            log.info("the job queue is back")
        self._is_away = False
        if job is not None and job.id is not None:
            self.in_hand.add(job.id)
        return job

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Record the end of a job; requeue an interrupted one."""
        if job.id is None:
            raise AssertionError("a job that was fetched has a number")
        try:
            while True:
                if await self._try_to_finish(job, job.id, status, delete_job=delete_job):
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self.in_hand.discard(job.id)

    async def _try_to_finish(self, job: Job, job_id: int, status: Status, *, delete_job: bool) -> bool:
        """Return whether no retry is needed."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                if status is Status.ABORTED:
                    await self._janitor.put_back(job_id)
                else:
                    await super().finish_job(job, status, delete_job)
        except (ConnectorException, InboxError, TimeoutError) as error:
            if isinstance(error.__cause__, RaiseException):
                log.warning("job %d was given to another worker meanwhile", job_id)
                return True
            self._note_outage(error)
            return self._is_ending
        return True

    async def update_heartbeat(self, worker_id: int) -> None:
        """Record the worker's heartbeat."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self.connector.execute_query_async(query=_HEARTBEAT, worker_id=worker_id)
        except (ConnectorException, TimeoutError) as error:
            self._note_outage(error)

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Listen for jobs, and reconnect after every lost connection."""

        async def note_notification(*, channel: str, notification: Notification) -> None:
            self._is_told = True
            await on_notification(channel=channel, notification=notification)

        while True:
            try:
                await super().listen_for_jobs(on_notification=note_notification, queues=queues)
            except ConnectorException as error:
                self._note_outage(error)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _note_outage(self, error: Exception) -> None:
        """Log that Postgres is down, once per outage."""
        if not self._is_away:
            log.warning("the job queue is away: %s", explain_queue_error(error))
        self._is_away = True


MANY = 100  # jobs at once by default
_DELETE_SECONDS = 600.0
_NEVER = "0 0 29 2 *"

CarryOut = Callable[..., Awaitable[None]]


@asynccontextmanager
async def run_queue_worker(queue: JobQueue, kind: str, carry_out: CarryOut, *, at_once: int) -> AsyncIterator[None]:
    """Carry out the jobs of a kind while the context is open; at the end, cancel and requeue those in progress.

    `carry_out` gets the arguments of a job by name.
    """

    janitor = Janitor(queue)
    app = _make_app(queue, kind, carry_out)
    manager = PatientJobManager(queue.connector, janitor)
    app.job_manager = manager
    async with (
        run_in_background(_keep_clean(janitor, manager, queue)),
        run_in_background(_keep_working(app, manager, queue, kind, at_once)),
    ):
        yield


def _make_app(queue: JobQueue, kind: str, carry_out: CarryOut) -> App:
    """Register the tasks with procrastinate.

    It watches its listener and its heartbeat only if there is a periodic task; this is the only
    one.
    """
    from procrastinate import App

    app = App(connector=queue.connector)

    async def carry_out_job(deaths: int = 0, **args: Any) -> None:  # noqa: ARG001 - the janitor's
        await carry_out(**args)

    async def do_nothing(timestamp: int) -> None:
        """Do nothing."""

    app.task(name=kind)(carry_out_job)
    app.periodic(cron=_NEVER)(app.task(name="never")(do_nothing))
    return app


async def _keep_working(app: App, manager: PatientJobManager, queue: JobQueue, kind: str, at_once: int) -> None:
    """Run the worker, and restart it whenever it ends, with or without an error."""
    while True:
        worker = asyncio.create_task(
            app.run_worker_async(
                queues=[kind],
                name=kind,
                concurrency=at_once,
                install_signal_handlers=False,
                shutdown_graceful_timeout=0,
                delete_jobs="never",  # deleting a job wakes none of those behind its lock
                update_heartbeat_interval=queue.times.heartbeat,
                stalled_worker_timeout=queue.times.stalled,
                fetch_job_polling_interval=queue.times.poll,
            )
        )
        try:
            await asyncio.wait({worker})
        except asyncio.CancelledError:
            await _end_worker(worker, manager, kind, seconds=queue.times.shutdown)
            raise
        log.warning("the worker on %s has ended and is restarted: %s", kind, _describe_end(worker))
        await asyncio.sleep(random.uniform(0.5, 1.5))  # noqa: S311 - no secret


async def _end_worker(worker: asyncio.Task[None], manager: PatientJobManager, kind: str, *, seconds: float) -> None:
    """Cancel a worker's jobs, and wait until they are requeued, up to a limit."""

    def note_end(ended: asyncio.Task[None]) -> None:
        if not ended.cancelled() and ended.exception() is not None:
            log.warning("the worker on %s could not say that it ends: %s", kind, _describe_end(ended))

    manager.begin_to_end()
    worker.add_done_callback(note_end)
    worker.cancel()
    _, late = await asyncio.wait({worker}, timeout=seconds)
    if late:
        log.warning("the worker on %s does not end in time, and is left", kind)


def _describe_end(worker: asyncio.Task[None]) -> str:
    """Describe a worker's end."""
    error = worker.exception()
    return "it was stopped" if error is None else str(explain_queue_error(error))


async def _keep_clean(janitor: Janitor, manager: PatientJobManager, queue: JobQueue) -> None:
    """Requeue the jobs of dead workers, and delete old ones."""
    loop = asyncio.get_running_loop()
    next_deletion = loop.time() + _DELETE_SECONDS * random.random()  # noqa: S311 - no secret
    while True:
        paused_at = loop.time()
        await asyncio.sleep(queue.times.sweep * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
        if loop.time() - paused_at > queue.times.stalled:
            continue  # this process was stopped: its own workers first have to show that they live
        try:
            await janitor.move_stalled(in_hand=manager.in_hand, worker_id=manager.worker_id)
            if loop.time() >= next_deletion:
                await janitor.delete_old()
                next_deletion = loop.time() + _DELETE_SECONDS
        except InboxError as error:
            log.debug("the jobs of dead workers were not looked for: %s", error)
