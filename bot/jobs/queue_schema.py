"""The tables of the job queue in Postgres: procrastinate's, made and upgraded by its files, and what wakes workers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bot.errors import InboxError

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection

_LOCK = 0x63697465_6A6F62  # "citejob": anyone who lays the tables out holds it
_LOCK_STEP = 0.1  # seconds
_NAME = "queue"  # among the layouts that the database has

# The queue tells its workers of jobs that are new. What waits behind a lock may begin when the one before it has ended,
# and what was interrupted when it waits again.
_WAKE = """
CREATE OR REPLACE TRIGGER citebot_wake AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (old.status = 'doing' AND (new.status = 'todo' OR new.lock IS NOT NULL))
    EXECUTE FUNCTION procrastinate_notify_queue_job_inserted_v1()"""


async def prepare_queue(connection: AsyncConnection[Any]) -> None:
    """Create the tables of the queue, or upgrade them to the installed version, in one transaction.

    Processes that start at once do it one after the other, also behind a transaction pooler. Raises `InboxError` if the
    tables are foreign or newer, or `psycopg.Error`.
    """
    from procrastinate.schema import SchemaManager

    upgrades = _list_upgrades(SchemaManager.get_migrations_path())
    async with connection.transaction():
        await _take_lock(connection)
        layout = await _read_layout(connection)
        if layout is None:
            await connection.execute(cast("Any", SchemaManager.get_schema()))
            await _note_layout(connection, max(upgrades))
        elif layout > max(upgrades):
            raise InboxError(
                f"The job queue in Postgres was made by a newer citebot (layout {layout}; this one takes up to "
                f"{max(upgrades)}). Use that version, or another database."
            )
        else:
            for number in list_due_upgrades(upgrades, layout):
                await connection.execute(cast("Any", upgrades[number].read_text(encoding="utf-8")))
                await _note_layout(connection, number)
        await connection.execute(_WAKE)


def list_due_upgrades(upgrades: dict[int, Path], layout: int) -> list[int]:
    """List the upgrades that a layout lacks, in their order.

    The last ones wait if they take away what the version before needs, processes of which may still be at work: the
    next version does that.
    """
    due = sorted(number for number in upgrades if number > layout)
    while due and "_post_" in upgrades[due[-1]].name:
        due.pop()
    return due


def _list_upgrades(folder: str) -> dict[int, Path]:
    """Find the upgrades by their numbers: `03.04.00_50_post_x.sql` has 3040050."""
    found = {}
    for path in Path(folder).glob("*.sql"):
        version, step, _ = path.name.split("_", 2)
        found[int(version.replace(".", "") + step)] = path
    return found


async def _take_lock(connection: AsyncConnection[Any]) -> None:
    while True:
        cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,))
        row = await cursor.fetchone()
        if row is not None and row[0]:
            return
        await asyncio.sleep(_LOCK_STEP)


async def _read_layout(connection: AsyncConnection[Any]) -> int | None:
    """Return the layout of the queue's tables; None if there are none."""
    cursor = await connection.execute("SELECT layout FROM citebot_layouts WHERE name = %s", (_NAME,))
    noted = await cursor.fetchone()
    if noted is not None:
        return int(noted[0])
    cursor = await connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
    found = await cursor.fetchone()
    if found is not None and found[0]:
        raise InboxError(
            "The database already holds a job queue that citebot did not make. Give citebot a database of its own."
        )
    return None


async def _note_layout(connection: AsyncConnection[Any], layout: int) -> None:
    await connection.execute(
        "INSERT INTO citebot_layouts (name, layout, changed_at) VALUES (%s, %s, clock_timestamp()) "
        "ON CONFLICT (name) DO UPDATE SET layout = excluded.layout, changed_at = excluded.changed_at",
        (_NAME, layout),
    )
