"""Conversations in a SQLite file: LangGraph's tables with the rows and the evidence beside them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.errors import CheckpointUnwritable, CheckpointVersion, SchemaError
from agent.persistence.conversation_saver import ConversationSaver, make_serializer
from agent.persistence.conversation_schema import create_checkpoint_tables, load_conversation_schema
from agent.persistence.migrations import migrate_database
from agent.persistence.sqlite_executor import SqliteExecutor, explain_sqlite_error

# With the write-ahead log only a power cut, not a killed process, can lose the newest steps.
_PRAGMAS = "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 1048576"


class SqliteConversations(SqliteExecutor, ConversationSaver):
    """Conversations in a file, with a connection for the checkpoints of each run.

    A run that is cancelled may leave LangGraph's checkpointer within a transaction, which ends with its connection.
    """

    checkpoint_tables = ("checkpoints", "writes")

    def __init__(self, connection: sqlite3.Connection, path: Path, *, busy_seconds: float) -> None:
        super().__init__(connection, path)
        self._busy_seconds = busy_seconds

    @asynccontextmanager
    async def open_checkpoints(self) -> AsyncIterator[AsyncSqliteSaver]:
        """Open a checkpointer for one run."""
        try:
            async with aiosqlite.connect(self._path, timeout=self._busy_seconds) as connection:
                await connection.executescript(_PRAGMAS)
                saver = AsyncSqliteSaver(connection, serde=make_serializer())
                saver.is_setup = True  # the tables were made when the file was opened
                yield saver
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self._path) from error


@asynccontextmanager
async def open_saver(path: Path, *, busy_seconds: float = 5.0) -> AsyncIterator[SqliteConversations]:
    """Open the conversation database, made when missing, and close it at the end; raises `CheckpointError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = await asyncio.to_thread(_open_connection, path, busy_seconds)
    except OSError as error:
        raise CheckpointUnwritable(
            f"The folder of the conversation database {path} cannot be made: {error.strerror}."
        ) from error
    except SchemaError as error:
        raise CheckpointVersion(str(error)) from error
    except sqlite3.Error as error:
        raise explain_sqlite_error(error, path) from error
    saver = SqliteConversations(connection, path, busy_seconds=busy_seconds)
    try:
        yield saver
    finally:
        await saver.close()


def _open_connection(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """Bring the database to the layout of this version, made when missing, and connect to it.

    A damaged one is refused and left as it is: to write to it would make that worse.
    """
    with closing(sqlite3.connect(path)) as db:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(" ".join(verdict.split()))
    migrate_database(path, load_conversation_schema())
    connection = sqlite3.connect(path, timeout=busy_seconds, check_same_thread=False)
    try:
        create_checkpoint_tables(connection)
        connection.executescript(_PRAGMAS)
        # Fail now if the file cannot be written: the first question is too late to find out.
        with connection:
            connection.execute("DELETE FROM writes WHERE thread_id IS NULL")
    except BaseException:
        connection.close()
        raise
    return connection
