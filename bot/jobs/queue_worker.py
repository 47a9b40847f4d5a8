"""A worker on one kind of jobs in Postgres: kept at work whatever happens there, with a janitor beside it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from bot.errors import InboxError
from bot.jobs.janitor import Janitor
from bot.jobs.job_queue import JobQueue, explain_queue_error
from bot.tasks import run_in_background

if TYPE_CHECKING:  # comes with the extra `cluster`
    from procrastinate import App

    from bot.jobs.patient_manager import PatientJobManager

MANY = 100  # jobs at once by default
_DELETE_SECONDS = 600.0
_NEVER = "0 0 29 2 *"

CarryOut = Callable[..., Awaitable[None]]

log = logging.getLogger(__name__)


@asynccontextmanager
async def run_queue_worker(queue: JobQueue, kind: str, carry_out: CarryOut, *, at_once: int) -> AsyncIterator[None]:
    """Carry out the jobs of a kind while the context is open; at the end, those in progress are cancelled and put back.

    `carry_out` gets the arguments of a job by their names.
    """
    from bot.jobs.patient_manager import PatientJobManager

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
    """Tell procrastinate of what is to be carried out.

    It watches its listener and its heartbeat only where there is a periodic task, and there is none but this one.
    """
    from procrastinate import App

    app = App(connector=queue.connector)

    async def carry_out_job(deaths: int = 0, **args: Any) -> None:  # noqa: ARG001 - the janitor's
        await carry_out(**args)

    async def do_nothing(timestamp: int) -> None:
        """Be there."""

    app.task(name=kind)(carry_out_job)
    app.periodic(cron=_NEVER)(app.task(name="never")(do_nothing))
    return app


async def _keep_working(app: App, manager: PatientJobManager, queue: JobQueue, kind: str, at_once: int) -> None:
    """Run the worker, and again whenever it has ended: it does so with an error, or without a word."""
    while True:
        worker = asyncio.create_task(
            app.run_worker_async(
                queues=[kind],
                name=kind,
                concurrency=at_once,
                install_signal_handlers=False,
                shutdown_graceful_timeout=0,
                delete_jobs="never",  # what is deleted wakes nobody who waits behind its lock
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
    """Cancel what a worker is at, and wait until that is put back, for that long at most."""

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
    """Say with what a worker has ended."""
    error = worker.exception()
    return "it was stopped" if error is None else str(explain_queue_error(error))


async def _keep_clean(janitor: Janitor, manager: PatientJobManager, queue: JobQueue) -> None:
    """Move what dead workers held, and delete what is old."""
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
