"""A SQLite database whose statements run in a thread, one transaction after the other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agent.errors import CheckpointDamaged, CheckpointError, CheckpointLocked, CheckpointUnwritable, CheckpointVersion
from agent.persistence.evidence_store import RunClaim, SqlExecutor, Statement

_SHRINK_STEP = 500  # pages

Result = TypeVar("Result")


class SqliteExecutor(SqlExecutor):
    """A connection that is used by one transaction at a time, each to its end even when the caller is cancelled."""

    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = asyncio.Lock()

    async def write_all(
        self, statements: Sequence[Statement], *, claim: RunClaim | None = None
    ) -> list[tuple[Any, ...]]:
        """Run statements in one transaction, under a claim where there is one: all of them, or none."""

        def write() -> list[tuple[Any, ...]]:
            with self._connection as db:
                if claim is not None:
                    claim.check(is_current=bool(db.execute(*self.make_use_statement(claim)).fetchall()))
                rows: list[tuple[Any, ...]] = []
                for sql, values in statements:
                    rows = db.execute(sql, values).fetchall()
                return rows

        return await self._run(write)

    async def shrink(self) -> None:
        """Give all freed pages back, some at a time: what else is to be written waits for one step at most."""
        ((free,),) = await self.rows("PRAGMA freelist_count")
        for _ in range(0, free, _SHRINK_STEP):
            # As a script, because it gives back one page a step and a plain statement is stepped once.
            await self._run(lambda: self._connection.executescript(f"PRAGMA incremental_vacuum({_SHRINK_STEP:d})"))

    async def close(self) -> None:
        """Close the connection, once nothing uses it."""
        await self._run(self._connection.close)

    async def _run(self, work: Callable[[], Result]) -> Result:
        async def finish() -> Result:
            async with self._lock:
                return await asyncio.to_thread(work)

        try:
            return await asyncio.shield(finish())
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self._path) from error


def explain_sqlite_error(error: sqlite3.Error, path: Path) -> CheckpointError:
    """Return the error to raise instead, which says what to do."""
    text = str(error).lower()
    if "readonly" in text or "unable to open" in text:
        return CheckpointUnwritable(
            f"The conversation database {path} cannot be written. Make the file and its folder writable."
        )
    if "full" in text:
        return CheckpointUnwritable(f"There is no space left for the conversation database {path}. Free some space.")
    if "locked" in text or "busy" in text:
        return CheckpointLocked(
            f"Another process holds the conversation database {path}. Stop it, or wait a moment and ask again."
        )
    if "no such" in text:
        return CheckpointVersion(
            f"The conversation database {path} was not laid out by this version of citebot. Move the file away."
        )
    return CheckpointDamaged(
        f"The conversation database {path} is damaged ({error}). Move the file away to start with no conversations, or "
        "bring back what was saved: citebot restore FILE --force."
    )
