"""Procrastinate's access to its tables, for a worker that outlives whatever happens to Postgres meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback
from psycopg.errors import RaiseException

from bot.errors import InboxError
from bot.jobs.janitor import Janitor
from bot.jobs.job_queue import explain_queue_error

_ANSWER_SECONDS = 15.0  # in which Postgres has to answer
_PAUSE_SECONDS = 1.0
# Anyone who was taken for dead is alive again with this: its jobs were moved meanwhile, but it may take new ones.
_HEARTBEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE
    VALUES (%(worker_id)s, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET last_heartbeat = excluded.last_heartbeat"""

log = logging.getLogger(__name__)


class PatientJobManager(JobManager):
    """Treats an outage as a time without jobs, and records the end of a job as soon as possible.

    By default, procrastinate ends a worker then, once all running jobs have ended: minutes in which nothing begins.
    `in_hand` are this worker's jobs. After `begin_to_end`, nothing is tried again.
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
        """Try nothing again from now on."""
        self._is_ending = True

    async def register_worker(self) -> int:
        """Give the worker its number."""
        self.worker_id = await super().register_worker()
        return self.worker_id

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Take the next job; None while there is none, or Postgres is away.

        The worker forgets a notification that comes while it looks for a job: what it tells of may have been added
        after Postgres had looked, so that it is looked for again.
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
        """Note that a job has ended; one that was interrupted waits again."""
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
        """Return whether no other try is needed."""
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
        """Show that the worker lives."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self.connector.execute_query_async(query=_HEARTBEAT, worker_id=worker_id)
        except (ConnectorException, TimeoutError) as error:
            self._note_outage(error)

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Be told of jobs, and again after each time that the connection was lost."""

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
        """Log that Postgres is away, once for each time."""
        if not self._is_away:
            log.warning("the job queue is away: %s", explain_queue_error(error))
        self._is_away = True
