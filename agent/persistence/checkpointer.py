"""The SQLite checkpointer: writes that a cancelled run cannot cut in half, pruning, and errors that say what to do."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
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
from agent.persistence.conversation_schema import load_conversation_schema
from agent.persistence.evidence_store import Statement, TransactionRunner, run_all
from agent.persistence.migrations import migrate_database
from agent.persistence.transaction_connection import TransactionConnection

_SHRINK_STEP = 500  # pages

log = logging.getLogger(__name__)
T = TypeVar("T")


class SafeSqliteSaver(AsyncSqliteSaver, TransactionRunner):
    """An `AsyncSqliteSaver` that always leaves its connection outside a transaction, and writes no more than it must.

    What every step of a run needs is done by the blocking saver of the same library in the connection's thread, which
    is one change of threads where the asynchronous one takes four.
    """

    conn: TransactionConnection

    def __init__(self, conn: TransactionConnection, path: Path) -> None:
        # Nothing but plain values and messages is ever made of what is read: a database may come from a backup, and
        # LangGraph would by default call whatever a checkpoint names.
        super().__init__(conn, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self._path = path
        self._held: dict[str, _Held] = {}

    @asynccontextmanager
    async def defer_checkpoints(self, thread_id: str) -> AsyncIterator[None]:
        """Hold the checkpoints of a thread back as long as repeating their steps would cost nothing.

        The newest is written after a step in which `flush_next` was called, when a person is asked, when a node fails,
        when somebody reads the thread, and when the context ends, however it does. The nodes of the run must come one
        after the other: what one wrote is saved with the checkpoint of its step, not before.
        """
        held = self._held[thread_id] = _Held()
        try:
            yield
        except BaseException:
            try:
                await self._run_after_held(held, _do_nothing)
            except CheckpointError as error:  # what went wrong before is the error to raise
                log.warning("the progress of a run was not saved: %s", error)
            raise
        else:
            await self._run_after_held(held, _do_nothing)
        finally:
            del self._held[thread_id]

    def flush_next(self, thread_id: str) -> None:
        """Write the checkpoint of the running step when it ends: the step was paid for and must not be repeated."""
        if (held := self._held.get(thread_id)) is not None:
            held.is_due = True

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, or hold it back."""
        where = config["configurable"]
        held = self._held.get(where["thread_id"], _Held(is_due=True))
        held.save = lambda db: _Tables(db, serde=self.serde).put(config, checkpoint, metadata, new_versions)
        if held.is_due:
            held.is_due = False
            await self.run_transaction(held.release())
        return {
            "configurable": {
                "thread_id": where["thread_id"],
                "checkpoint_ns": where["checkpoint_ns"],
                "checkpoint_id": checkpoint["id"],
            }
        }

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a node wrote before its step is over, unless the checkpoint of the step will hold it anyway."""
        held = self._held.get(config["configurable"]["thread_id"])
        comes_from_node = bool(task_path) and not any(channel in WRITES_IDX_MAP for channel, _ in writes)
        if held is not None and comes_from_node:
            return
        await self._run_after_held(
            held, lambda db: _Tables(db, serde=self.serde).put_writes(config, writes, task_id, task_path)
        )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the newest checkpoint of a thread, or the one named."""
        held = self._held.get(config["configurable"]["thread_id"])
        # It stays held: the run must not lose a step because somebody could not read.
        save = held.save if held is not None else None
        return await self.run_transaction(
            _run_in_order(save or _do_nothing, lambda db: _Tables(db, serde=self.serde).get_tuple(config))
        )

    async def _run_after_held(self, held: _Held | None, work: Callable[[sqlite3.Connection], T]) -> T:
        """Write what was held back and do the work, all in one transaction."""
        return await self.run_transaction(_run_in_order(held.release() if held is not None else _do_nothing, work))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread and everything in it."""

        def delete(db: sqlite3.Connection) -> None:
            _Tables(db).delete_thread(thread_id)
            _free_pages(db)

        await self.run_transaction(delete)

    async def prune_thread(self, thread_id: str, *more: Statement) -> None:
        """Keep the newest checkpoint of a thread and drop the rest; only when no run of it is under way.

        The statements in `more` run in the same transaction.
        """

        def prune(db: sqlite3.Connection) -> None:
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


@dataclass
class _Held:
    """The newest checkpoint of a run, unless it is written; `is_due` where the next one must be."""

    save: Callable[[sqlite3.Connection], object] | None = None
    is_due: bool = False

    def release(self) -> Callable[[sqlite3.Connection], object]:
        """Return the function that writes the checkpoint, and no longer hold it."""
        save, self.save = self.save or _do_nothing, None
        return save


class _Tables(SqliteSaver):
    """The checkpoints, within a transaction that is somebody else's to begin and to end."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - overrides
        """Give a cursor, without the commit that the library makes of half a write, too."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


def _do_nothing(_: sqlite3.Connection) -> None:
    """Write nothing: no checkpoint is held."""


def _run_in_order(
    save: Callable[[sqlite3.Connection], object], work: Callable[[sqlite3.Connection], T]
) -> Callable[[sqlite3.Connection], T]:
    """Combine two pieces of work into one for the same transaction."""

    def both(db: sqlite3.Connection) -> T:
        save(db)
        return work(db)

    return both


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

    Fail here when the file cannot be opened: aiosqlite's thread outlives a connection that never came about. A damaged
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
