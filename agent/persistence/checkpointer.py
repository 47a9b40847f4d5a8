"""Conversations in a SQLite file: LangGraph's tables with the rows and the evidence beside them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.persistence.conversation_saver import ConversationSaver, make_serializer
from agent.persistence.evidence_store import ERRORS
from agent.persistence.migrations import create_checkpoint_tables, load_conversation_schema
from agent.persistence.sqlite import SqliteDatabase, explain_sqlite_error, open_sqlite

# With the write-ahead log only a power cut, not a killed process, can lose the newest steps.
_PRAGMAS = "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 1048576"
_MAX_IDLE = 8  # connections that are kept for the next runs


class SqliteConversations(ConversationSaver):
    """Conversations in a file, with a connection for the checkpoints of each run, which the next run takes over.

    A run that is cancelled may leave LangGraph's checkpointer within a transaction: its connection is closed.
    """

    checkpoint_tables = ("checkpoints", "writes")

    def __init__(self, database: SqliteDatabase, *, busy_seconds: float) -> None:
        super().__init__(database)
        self._path = database.path
        self._busy_seconds = busy_seconds
        self._idle: list[aiosqlite.Connection] = []
        self._is_closed = False

    @asynccontextmanager
    async def open_checkpoints(self) -> AsyncIterator[AsyncSqliteSaver]:
        """Open a checkpointer for one run."""
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            try:
                await connection.executescript(_PRAGMAS)
                saver = AsyncSqliteSaver(connection, serde=make_serializer())
                saver.is_setup = True  # the tables were made when the file was opened
                yield saver
            except BaseException:
                await connection.close()
                raise
            await self._put_back(connection)
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self._path, "conversation", ERRORS) from error

    async def close_idle(self) -> None:
        """Close what no run is using."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _connect(self) -> aiosqlite.Connection:
        opening = asyncio.ensure_future(aiosqlite.connect(self._path, timeout=self._busy_seconds))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(sqlite3.Error):
                await (await opening).close()  # by then its thread has opened the file
            raise

    async def _put_back(self, connection: aiosqlite.Connection) -> None:
        if self._is_closed or len(self._idle) >= _MAX_IDLE or connection.in_transaction:
            await connection.close()
        else:
            self._idle.append(connection)


@asynccontextmanager
async def open_saver(path: Path, *, busy_seconds: float = 5.0) -> AsyncIterator[SqliteConversations]:
    """Open the conversation database, creating it if missing, and close it at the end; raises `CheckpointError`."""
    schema = load_conversation_schema()
    async with open_sqlite(
        path, schema, ERRORS, prepare=_prepare, synchronous="NORMAL", busy_seconds=busy_seconds
    ) as database:
        conversations = SqliteConversations(database, busy_seconds=busy_seconds)
        try:
            yield conversations
        finally:
            await conversations.close_idle()


def _prepare(db: sqlite3.Connection) -> None:
    create_checkpoint_tables(db)
    # Fail now if the file cannot be written: the first question is too late to find out.
    db.execute("DELETE FROM writes WHERE thread_id IS NULL")
