"""The table `refreshes`: the progress and the end of each requested refresh, for everybody who follows it."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bot.errors import InboxError
from bot.jobs.job_queue import JobQueue
from bot.storage.leases import IS_HELD, Lease
from indexer import Progress, RefreshReport

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection

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

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshState:
    """The progress of a refresh; `is_cared_for` says whether any indexer is at work."""

    progress: Progress | None
    report: RefreshReport | None
    failure: str | None
    is_cared_for: bool


class RefreshTickets:
    """Writes down the course of refreshes, by ticket; all methods raise `InboxError` but those that say otherwise."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    async def issue(self, connection: AsyncConnection[Any], repository: str) -> int:
        """Return a new ticket, in the transaction of a connection; what is older than a day is dropped."""
        await connection.execute(_DROP_OLD, (repository,))
        row = await (await connection.execute(_ISSUE, (repository,))).fetchone()
        if row is None:
            raise AssertionError("an insert returns its row")
        return int(row[0])

    async def note_progress(self, ticket: int, lease: Lease, progress: Progress) -> None:
        """Write down how far a refresh is; where that fails, the next time will do."""
        values = {"ticket": ticket, "progress": json.dumps(asdict(progress)), **_show(lease)}
        try:
            await self._queue.fetch(_NOTE_PROGRESS, values)
        except InboxError as error:
            log.debug("the progress of a refresh was not written down: %s", error)

    async def note_end(self, ticket: int, lease: Lease, end: RefreshReport | str) -> None:
        """Write down the report of a refresh, or why there is none; the first end under the newest lease counts.

        While Postgres is away, this keeps trying.
        """
        report = json.dumps(asdict(end)) if isinstance(end, RefreshReport) else None
        values = {"ticket": ticket, "report": report, "failure": None if report else end, **_show(lease)}

        async def write(connection: AsyncConnection[Any]) -> None:
            await connection.execute(_NOTE_END, values)

        await self._queue.run_until_done(write)

    async def read(self, repository: str, ticket: int) -> RefreshState | None:
        """Read how far a refresh has come, or the one that takes its place; None if it was given up."""
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
