"""The SQLite checkpointer: writes that a cancelled run cannot cut in half, pruning, and errors that say what to do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.errors import (
    CheckpointDamaged,
    CheckpointError,
    CheckpointLocked,
    CheckpointUnwritable,
    CheckpointVersion,
    SchemaError,
)
from agent.persistence.conversation_saver import ConversationSaver, StepCheckpoint, StepWrites
from agent.persistence.conversation_schema import load_conversation_schema
from agent.persistence.evidence_store import RunClaim, Statement, make_forget_statements
from agent.persistence.migrations import migrate_database
from agent.persistence.sqlite_transactions import TransactionRunner, run_all, use_claim
from agent.persistence.transaction_connection import TransactionConnection

_SHRINK_STEP = 500  # pages

T = TypeVar("T")


class SafeSqliteSaver(TransactionRunner, ConversationSaver, AsyncSqliteSaver):
    """An `AsyncSqliteSaver` that always leaves its connection outside a transaction, and writes no more than it must.

    What every step of a run needs is done by the blocking saver of the same library in the connection's thread, which
    is one change of threads where the asynchronous one takes four.
    """

    conn: TransactionConnection
    side_tables = ("writes",)

    def __init__(self, conn: TransactionConnection, path: Path) -> None:
        super().__init__(conn)
        self._path = path

    async def write_step(
        self, checkpoint: StepCheckpoint | None, writes: StepWrites | None = None, *, claim: RunClaim | None = None
    ) -> None:
        """Write a checkpoint and then the writes of a task, where the claim lets it."""

        def write(db: sqlite3.Connection) -> None:
            tables = _Tables(db, serde=self.serde)
            use_claim(db, claim)
            if checkpoint is not None:
                tables.put(*checkpoint)
            if writes is not None:
                tables.put_writes(*writes)

        await self.run_transaction(write)

    async def read_step(
        self, config: RunnableConfig, *, after: StepCheckpoint | None, claim: RunClaim | None = None
    ) -> CheckpointTuple | None:
        """Write a checkpoint, and read the newest of the thread, or the one named."""

        def read(db: sqlite3.Connection) -> CheckpointTuple | None:
            tables = _Tables(db, serde=self.serde)
            if after is not None:
                use_claim(db, claim)
                tables.put(*after)
            return tables.get_tuple(config)

        return await self.run_transaction(read)

    async def adelete_thread(self, thread_id: str, *, claim: RunClaim | None = None) -> None:
        """Delete a thread and everything in it, where the claim lets it; no run of before writes in it any more."""

        def delete(db: sqlite3.Connection) -> None:
            use_claim(db, claim)
            _Tables(db).delete_thread(thread_id)
            run_all(db, make_forget_statements(thread_id))
            _free_pages(db)

        await self.run_transaction(delete)

    async def prune_thread(self, thread_id: str, *more: Statement, claim: RunClaim | None = None) -> None:
        """Keep the newest checkpoint of a thread and drop the rest; only when no run of it is in progress.

        The statements in `more` run in the same transaction, where the claim lets it.
        """

        def prune(db: sqlite3.Connection) -> None:
            use_claim(db, claim)
            newest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '')"
            for table in ("checkpoints", "writes"):
                db.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id <> {newest}",  # noqa: S608 - both parts are constants
                    (thread_id, thread_id),
                )
            run_all(db, more)
            _free_pages(db)

        await self.run_transaction(prune)

    async def shrink(self) -> None:
        """Give all freed pages back, some at a time: what else is to be written waits for one step at most."""
        ((free,),) = await self.rows("PRAGMA freelist_count")
        for _ in range(0, free, _SHRINK_STEP):
            await self.run_transaction(lambda db: _free_pages(db, _SHRINK_STEP))

    async def run_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in one transaction, to its end even when the caller is cancelled; raises `CheckpointError`."""
        try:
            return await self.conn.run_transaction(work)
        except sqlite3.Error as error:
            raise _map_sqlite_error(error, self._path) from error


class _Tables(SqliteSaver):
    """The checkpoints, within a transaction that is somebody else's to begin and to end."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - overrides
        """Give a cursor, without the commit that the library makes of half a write, too."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


def _free_pages(db: sqlite3.Connection, most: int = 0) -> None:
    """Give freed pages back, at most so many (0: all of them), so that the file is as small as its content.

    What was done before in the same transaction is committed first.
    """
    # As a script, because it gives back one page a step and a plain statement is stepped once.
    db.executescript(f"PRAGMA incremental_vacuum({most:d})")


@asynccontextmanager
async def open_saver(path: Path, *, busy_seconds: float = 5.0) -> AsyncIterator[SafeSqliteSaver]:
    """Open the conversation database, made when missing, and close it at the end; raises `CheckpointError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointUnwritable(
            f"The folder of the conversation database {path} cannot be made: {error.strerror}."
        ) from error
    await asyncio.to_thread(_try_opening, path)
    conn = TransactionConnection(path, busy_seconds=busy_seconds)
    try:
        saver = await _prepare_saver(conn, path)
        yield saver
    finally:
        await conn.close()


def _try_opening(path: Path) -> None:
    """Bring the database to the layout of this version, made when missing.

    Fail here when the file cannot be opened: aiosqlite's thread outlives a connection that was never opened. A damaged
    one is refused and left as it is: to write to it would make that worse.
    """
    try:
        with closing(sqlite3.connect(path)) as db:
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(" ".join(verdict.split()))
        migrate_database(path, load_conversation_schema())
    except SchemaError as error:
        raise CheckpointVersion(str(error)) from error
    except sqlite3.Error as error:
        raise _map_sqlite_error(error, path) from error


async def _prepare_saver(conn: TransactionConnection, path: Path) -> SafeSqliteSaver:
    try:
        await conn
        saver = SafeSqliteSaver(conn, path)
        await saver.setup()
        # With the write-ahead log only a power cut, not a killed process, can lose the newest steps.
        await conn.execute("PRAGMA synchronous = NORMAL")
        await conn.execute("PRAGMA journal_size_limit = 1048576")
        # Fail now if the file cannot be written: the first question is too late to find out.
        await conn.execute("DELETE FROM writes WHERE thread_id IS NULL")
        await conn.commit()
    except sqlite3.Error as error:
        raise _map_sqlite_error(error, path) from error
    return saver


def _map_sqlite_error(error: sqlite3.Error, path: Path) -> CheckpointError:
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
