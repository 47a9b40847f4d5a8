"""The SQLite checkpointer: writes that a cancelled run cannot cut in half, pruning, and errors that say what to do."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.errors import (
    CheckpointDamaged,
    CheckpointError,
    CheckpointLocked,
    CheckpointUnwritable,
    CheckpointVersion,
)
from agent.evidence_store import EvidenceStore
from agent.journal import Journal

SCHEMA_VERSION = 2
_SHRINK_STEP = 500  # pages

log = logging.getLogger(__name__)
T = TypeVar("T")


class SafeSaver(AsyncSqliteSaver):
    """An `AsyncSqliteSaver` that always leaves its connection outside a transaction.

    A write runs in a task of its own, so that cancelling the run cannot stop it between statement and commit;
    a write that fails is rolled back, because a connection left inside a transaction fails for ever after.
    """

    def __init__(self, conn: aiosqlite.Connection, path: Path) -> None:
        super().__init__(conn)
        self._path = path

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint."""
        return await self._whole(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a node wrote before its step is over."""
        await self._whole(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread and everything in it."""
        await self._whole(super().adelete_thread(thread_id))
        await self._whole(self._release_pages())

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the newest checkpoint of a thread, or the one named."""
        return await self._whole(super().aget_tuple(config))

    async def prune_thread(self, thread_id: str) -> None:
        """Keep the newest checkpoint of a thread and drop the rest; only when no run of it is under way."""
        await self._whole(self._prune(thread_id))

    async def write(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement in a transaction of its own, for the tables beside the checkpoints."""
        await self.write_all([(sql, values)])

    async def write_all(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Run statements in one transaction: all of them, or none."""
        await self._whole(self._written(statements))

    async def _written(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        async with self.lock:
            for sql, values in statements:
                await self.conn.execute(sql, values)
            await self.conn.commit()

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query on the tables beside the checkpoints."""
        return await self._whole(self._read(sql, values))

    async def _read(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        async with self.lock, self.conn.execute(sql, values) as cursor:
            return [tuple(row) for row in await cursor.fetchall()]

    async def _prune(self, thread_id: str) -> None:
        newest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '')"
        async with self.lock:
            for table in ("checkpoints", "writes"):
                await self.conn.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id <> {newest}",  # noqa: S608 - both parts are constants
                    (thread_id, thread_id),
                )
            await self.conn.commit()
        await self._release_pages()

    async def shrink(self) -> None:
        """Give all freed pages back, some at a time: what else is to be written waits for one step at most."""
        ((free,),) = await self.rows("PRAGMA freelist_count")
        for _ in range(0, free, _SHRINK_STEP):
            await self._whole(self._release_pages(_SHRINK_STEP))

    async def _release_pages(self, most: int = 0) -> None:
        """Give freed pages back, all unless told how many, so that the file is as small as what is in it."""
        # As a script, because it gives back one page a step and a plain statement is stepped once.
        async with self.lock, self.conn.executescript(f"PRAGMA incremental_vacuum({most:d})"):
            pass

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work to its end even when the caller is cancelled meanwhile."""
        task = asyncio.create_task(self._or_roll_back(work))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                log.warning("a checkpoint of a cancelled run was not written: %s", error)
            raise

    async def _or_roll_back(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except sqlite3.Error as error:
            async with self.lock:
                await self.conn.rollback()
            raise _explain(error, self._path) from error


@asynccontextmanager
async def open_saver(path: Path, *, busy_seconds: float = 5.0) -> AsyncIterator[SafeSaver]:
    """Open the conversation database, made when missing, and close it at the end; raises `CheckpointError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointUnwritable(
            f"The folder of the conversation database {path} cannot be made: {error.strerror}."
        ) from error
    await asyncio.to_thread(_try_opening, path)
    conn = aiosqlite.connect(path, timeout=busy_seconds)
    try:
        saver = await _prepared(conn, path)
        yield saver
    finally:
        await conn.close()


def _try_opening(path: Path) -> None:
    """Fail here when the file cannot be opened: aiosqlite's thread outlives a connection that never came about."""
    try:
        sqlite3.connect(path).close()
    except sqlite3.Error as error:
        raise _explain(error, path) from error


async def _prepared(conn: aiosqlite.Connection, path: Path) -> SafeSaver:
    try:
        await conn
        fresh = await _check_version(conn, path)
        if fresh:
            await conn.execute("PRAGMA auto_vacuum = INCREMENTAL")
        saver = SafeSaver(conn, path)
        await saver.setup()
        if fresh:
            await conn.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        # With the write-ahead log only a power cut, not a killed process, can lose the newest steps.
        await conn.execute("PRAGMA synchronous = NORMAL")
        await conn.execute("PRAGMA journal_size_limit = 1048576")
        await Journal(saver).open()
        await EvidenceStore(saver).open()
        await _probe_writing(conn)
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    return saver


async def _check_version(conn: aiosqlite.Connection, path: Path) -> bool:
    """Return whether the database is new; raises `CheckpointVersion` when another version made it."""
    version = await _number(conn, "PRAGMA user_version")
    tables = await _number(conn, "SELECT count(*) FROM sqlite_schema")
    if version == 0 and tables == 0:
        return True
    if version != SCHEMA_VERSION:
        raise CheckpointVersion(
            f"The conversation database {path} was written by another version of citebot. "
            "Run that version, or move the file away to start with no conversations."
        )
    return False


async def _number(conn: aiosqlite.Connection, query: str) -> int:
    async with conn.execute(query) as cursor:
        row = await cursor.fetchone()
    return int(row[0]) if row is not None else 0


async def _probe_writing(conn: aiosqlite.Connection) -> None:
    """Fail now, at the start, if the file cannot be written; a first question is too late to say so."""
    await conn.execute("DELETE FROM writes WHERE thread_id IS NULL")
    await conn.commit()


def _explain(error: sqlite3.Error, path: Path) -> CheckpointError:
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
        f"The conversation database {path} is damaged ({error}). Move the file away to start with no conversations."
    )
