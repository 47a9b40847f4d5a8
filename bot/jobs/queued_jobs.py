"""Answers and refreshes as jobs in Postgres, taken by any worker."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bot.errors import InboxError, describe_unexpected
from bot.jobs.job_queue import JobQueue, JobRequest, make_lock
from bot.jobs.queue_worker import MANY, run_queue_worker
from bot.ports import RefreshCourse, RefreshWork
from bot.storage.leases import IS_HELD, Lease, Leases
from indexer import IndexerError, Progress, RefreshReport

if TYPE_CHECKING:
    from psycopg import AsyncConnection

log = logging.getLogger(__name__)

_ISSUE = "INSERT INTO refreshes (repository) VALUES (%s) RETURNING ticket"
_DROP_OLD = "DELETE FROM refreshes WHERE repository = %s AND asked_at < clock_timestamp() - interval '1 day'"
LEASE_KIND = "refresh"  # in the names of leases, before that of a repository
_NOTE_PROGRESS = f"UPDATE refreshes SET progress = %(progress)s WHERE ticket = %(ticket)s AND {IS_HELD} RETURNING 1"  # noqa: S608 - constants
_NOTE_END = f"""
UPDATE refreshes SET report = %(report)s, failure = %(failure)s
    WHERE ticket = %(ticket)s AND report IS NULL AND failure IS NULL AND {IS_HELD}"""  # noqa: S608
# A refresh that is lost is made good by any later one of its repository: that began after it was asked for.
_READ = f"""
SELECT progress, report, failure, EXISTS (
    SELECT 1 FROM leases WHERE name LIKE '{LEASE_KIND} %%' AND owner <> '' AND lease_until >= lease_clock())
    FROM refreshes WHERE repository = %(repository)s AND ticket >= %(ticket)s AND (
        report IS NOT NULL OR failure IS NOT NULL OR EXISTS (
            SELECT 1 FROM procrastinate_jobs WHERE queue_name = 'refreshes' AND status IN ('todo', 'doing')
            AND args->>'ticket' = refreshes.ticket::text))
    ORDER BY ticket LIMIT 1"""  # noqa: S608


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshState:
    """The progress of a refresh; `is_cared_for` says whether any indexer is running."""

    progress: Progress | None
    report: RefreshReport | None
    failure: str | None
    is_cared_for: bool


class RefreshTickets:
    """Records the progress of refreshes, by ticket; methods raise `InboxError` unless they say otherwise."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    async def issue(self, connection: AsyncConnection[Any], repository: str) -> int:
        """Return a new ticket, in the transaction of a connection; tickets older than a day are dropped."""
        await connection.execute(_DROP_OLD, (repository,))
        row = await (await connection.execute(_ISSUE, (repository,))).fetchone()
        if row is None:
            raise AssertionError("an insert returns its row")
        return int(row[0])

    async def note_progress(self, ticket: int, lease: Lease, progress: Progress) -> None:
        """Record the progress of a refresh; after a failure, the next record will do."""
        values = {"ticket": ticket, "progress": json.dumps(asdict(progress)), **_show(lease)}
        try:
            await self._queue.fetch(_NOTE_PROGRESS, values)
        except InboxError as error:
            log.debug("the progress of a refresh was not written down: %s", error)

    async def note_end(self, ticket: int, lease: Lease, end: RefreshReport | str) -> None:
        """Record the report or failure of a refresh; the first end under the newest lease counts.

        While Postgres is down, this keeps trying.
        """
        report = json.dumps(asdict(end)) if isinstance(end, RefreshReport) else None
        values = {"ticket": ticket, "report": report, "failure": None if report else end, **_show(lease)}

        async def write(connection: AsyncConnection[Any]) -> None:
            await connection.execute(_NOTE_END, values)

        await self._queue.run_until_done(write)

    async def read(self, repository: str, ticket: int) -> RefreshState | None:
        """Read the progress of a refresh, or of its replacement; None if it was given up."""
        values = {"repository": repository, "ticket": ticket}
        for progress, report, failure, is_cared_for in await self._queue.fetch(_READ, values):
            return RefreshState(
                progress=Progress(**json.loads(progress)) if progress else None,
                report=_parse_report(report) if report else None,
                failure=failure,
                is_cared_for=is_cared_for,
            )
        return None


def _show(lease: Lease) -> dict[str, str | int]:
    return {"lease": lease.name, "token": lease.token}


def _parse_report(text: str) -> RefreshReport:
    fields = json.loads(text)
    return RefreshReport(**fields | {"warnings": tuple(fields["warnings"])})


REFRESHES = "refreshes"
LOOK_SECONDS = 0.5
IDLE_SECONDS = 60.0  # without any indexer at work, after which who follows a refresh is told
NO_INDEXER = (
    "No indexer is at work, so {name} waits to be indexed. Start one with `citebot serve --role index`, or see in its "
    "log why it does nothing."
)
_GIVEN_UP = "Indexing {name} was given up: citebot died each time while doing so. The log of the indexer says more."

# The waiting job, locked against other workers.
_WAITING = "SELECT id, args FROM procrastinate_jobs WHERE queueing_lock = %(key)s AND status = 'todo' FOR UPDATE"
_UNDER_WAY = """
SELECT id, args FROM procrastinate_jobs
    WHERE lock = %(key)s AND status = 'doing' AND (NOT %(full)s OR (args->>'full')::boolean)"""
_MAKE_FULL = "UPDATE procrastinate_jobs SET args = jsonb_set(args, '{full}', 'true') WHERE id = %(id)s"


class QueuedRefreshJobs:
    """Requests refreshes from the indexers.

    Each request has a ticket, which records its progress. A refresh holds a lease on its
    repository: an indexer declared dead that wakes up while another one works can record nothing.
    """

    def __init__(self, queue: JobQueue, leases: Leases) -> None:
        self._queue = queue
        self._leases = leases
        self._tickets = RefreshTickets(queue)

    async def ask_for_refresh(self, repository: str, *, full: bool = False, join: bool = False) -> RefreshCourse:
        """Request a refresh, once more if one is in progress; requests share a waiting one."""
        ticket = None
        while ticket is None:  # another process may have been faster to ask, and a worker faster to begin

            async def ask(connection: AsyncConnection[Any]) -> int | None:
                return await self._ask_once(connection, repository, full=full, join=join)

            ticket = await self._queue.run(ask)
        return self._follow(repository, ticket)

    async def join_refresh(self, repository: str) -> RefreshCourse | None:
        """Return the course of the waiting refresh, else of the one in progress; None without either."""

        async def find(connection: AsyncConnection[Any]) -> int | None:
            return await self._find_ticket(connection, make_lock("repository", repository))

        ticket = await self._queue.run(find)
        return self._follow(repository, ticket) if ticket is not None else None

    async def _find_ticket(self, connection: AsyncConnection[Any], key: str) -> int | None:
        for query in (_WAITING, _UNDER_WAY):
            if found := await (await connection.execute(query, {"key": key, "full": False})).fetchone():
                return int(found[1]["ticket"])
        return None

    async def _ask_once(
        self, connection: AsyncConnection[Any], repository: str, *, full: bool, join: bool
    ) -> int | None:
        """Find a suitable refresh, or request one; return its ticket, or None if another try is needed."""
        key = make_lock("repository", repository)
        found = await (await connection.execute(_WAITING, {"key": key})).fetchone()
        if found is not None:
            if full:
                await connection.execute(_MAKE_FULL, {"id": found[0]})
            return int(found[1]["ticket"])
        if join:
            found = await (await connection.execute(_UNDER_WAY, {"key": key, "full": full})).fetchone()
            if found is not None:
                return int(found[1]["ticket"])
        ticket = await self._tickets.issue(connection, repository)
        args: dict[str, int | str | bool] = {"ticket": ticket, "repository": repository, "full": full}
        is_new = await self._queue.add(JobRequest(queue=REFRESHES, args=args, lock=key, key=key), connection)
        return ticket if is_new else None

    async def _follow(self, repository: str, ticket: int) -> AsyncGenerator[Progress | RefreshReport, None]:
        """Follow the recorded progress of a refresh until it has ended."""
        loop, shown = asyncio.get_running_loop(), None
        seen_at = loop.time()  # an indexer, or Postgres away
        while True:
            try:
                course = await self._tickets.read(repository, ticket)
            except InboxError as error:
                log.info("a refresh is followed on as soon as that is possible: %s", error)
                seen_at = loop.time()
            else:
                if course is None:
                    raise IndexerError(_GIVEN_UP.format(name=repository))
                if course.failure is not None:
                    raise IndexerError(course.failure)
                if course.report is not None:
                    yield course.report
                    return
                if course.progress not in {None, shown}:
                    shown = course.progress
                    yield course.progress
                seen_at = loop.time() if course.is_cared_for else seen_at
            if loop.time() - seen_at > IDLE_SECONDS:
                raise IndexerError(NO_INDEXER.format(name=repository))
            await asyncio.sleep(LOOK_SECONDS)

    @asynccontextmanager
    async def work_on_refreshes(self, refresh: RefreshWork, *, at_once: int | None = None) -> AsyncIterator[None]:
        """Refresh while the context is open, `at_once` repositories at most."""

        async def carry_out(ticket: int, repository: str, full: bool) -> None:
            await self._carry_out(refresh, ticket, repository, full=full)

        async with run_queue_worker(self._queue, REFRESHES, carry_out, at_once=at_once or MANY):
            yield

    async def _carry_out(self, refresh: RefreshWork, ticket: int, repository: str, *, full: bool) -> None:
        """Refresh, and record its progress and its end."""
        holding = self._leases.hold(f"{LEASE_KIND} {repository}", self._queue.times.stalled)
        async with holding as lease, self._show_progress(ticket, lease) as show:
            try:
                report = await refresh(repository, full, show)
            except IndexerError as error:
                log.warning("%s was not indexed: %s", repository, error)
                await self._tickets.note_end(ticket, lease, str(error))
            except Exception as error:
                await self._tickets.note_end(ticket, lease, describe_unexpected(error))
                raise
            else:
                await self._tickets.note_end(ticket, lease, report)

    @asynccontextmanager
    async def _show_progress(self, ticket: int, lease: Lease) -> AsyncIterator[Callable[[Progress], None]]:
        """Record the newest progress periodically; `show` may be called from any thread."""
        newest: list[Progress] = []

        async def write() -> None:
            written = None
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                if newest and newest[-1] != written:
                    written = newest[-1]
                    newest[:] = [written]
                    await self._tickets.note_progress(ticket, lease, written)

        writing = asyncio.create_task(write())
        try:
            yield newest.append
        finally:
            writing.cancel()


ANSWERS = "answers"
_COMMAND_PRIORITY = 10


class QueuedAnswerJobs:
    """Requests answers from all processes. A job has only the number of the message: the inbox has the rest."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    async def ask_for_answer(self, entry_id: int, conversation: str, *, is_command: bool = False) -> None:
        """Request the answer to a message in its turn; a command waits only for a free worker."""
        await self._queue.add(
            JobRequest(
                queue=ANSWERS,
                args={"entry_id": entry_id},
                lock=None if is_command else make_lock("conversation", conversation),
                key=f"message {entry_id}",
                priority=_COMMAND_PRIORITY if is_command else 0,
            )
        )

    @asynccontextmanager
    async def work_on_answers(
        self, answer: Callable[[int], Awaitable[None]], *, at_once: int | None = None
    ) -> AsyncIterator[None]:
        """Answer while the context is open, `at_once` messages at most."""

        async def carry_out(entry_id: int) -> None:
            await answer(entry_id)

        async with run_queue_worker(self._queue, ANSWERS, carry_out, at_once=at_once or MANY):
            yield
