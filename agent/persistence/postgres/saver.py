"""Conversations in Postgres: LangGraph's own tables, with our rows and evidence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from agent.errors import CheckpointError
from agent.persistence.conversation_saver import ConversationSaver, make_serializer
from agent.persistence.evidence_store import ERRORS
from agent.persistence.migrations import Schema
from agent.persistence.postgres.database import (
    PostgresDatabase,
    PostgresTransaction,
    connect_postgres,
    explain_postgres_error,
    open_postgres_database,
)

if TYPE_CHECKING:  # comes with the extra `cluster`
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection

# "citechkp": anyone who lets LangGraph make its tables holds this. A statement with values would keep its snapshot.
_TRY_LOCK = f"SELECT pg_try_advisory_xact_lock({0x63697465_63686B70})"
_LOCK_SECONDS = 60.0
_PATIENCE_SECONDS = 30.0  # a restart of Postgres, or a change to its standby, takes less
_CONNECTIONS = 4


class PostgresConversations(ConversationSaver):
    """Conversations in a database, with a checkpointer for each run over the same few connections."""

    checkpoint_tables = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")

    def __init__(self, database: PostgresDatabase | PostgresTransaction) -> None:
        super().__init__(database)
        self._connections = database.pool if isinstance(database, PostgresDatabase) else database.connection

    @asynccontextmanager
    async def open_checkpoints(self) -> AsyncIterator[AsyncPostgresSaver]:
        """Open a checkpointer for one run: each does one thing at a time, so a shared one would be a queue."""
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg import Error

        try:
            yield AsyncPostgresSaver(self._connections, serde=make_serializer())
        except Error as error:
            raise explain_postgres_error(error, ERRORS) from error


@asynccontextmanager
async def open_postgres_saver(url: str, *, patience: float = _PATIENCE_SECONDS) -> AsyncIterator[PostgresConversations]:
    """Open the conversations in a database, creating missing tables; raises `CheckpointError`.

    `patience` is how many seconds work waits for a database that does not answer.
    """
    schema = load_postgres_schema()
    async with open_postgres_database(url, schema, ERRORS, connections=_CONNECTIONS, patience=patience) as database:
        async with connect_postgres(url, ERRORS) as connection:
            await _create_checkpoint_tables(connection, url)
        yield PostgresConversations(database)


def load_postgres_schema() -> Schema:
    """Return the layout of our tables, beside LangGraph's."""
    return Schema.load("conversation", "agent.persistence", "postgres")


async def prepare_postgres_conversations(url: str) -> None:
    """Migrate the tables to this version's layout, creating missing ones; raises `CheckpointError`."""
    async with open_postgres_saver(url):
        pass


async def _create_checkpoint_tables(connection: AsyncConnection[Any], url: str) -> None:
    """Let LangGraph create its tables, one process after the other.

    It builds indexes that wait for every transaction that looks at the database. One that waits for
    a lock does, so none waits: each retries. The lock is of a transaction, for a pooler of
    transactions knows no other.
    """
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    for _ in range(int(_LOCK_SECONDS / 0.1)):
        async with connection.transaction():
            cursor = await connection.execute(cast("Any", _TRY_LOCK))
            if await cursor.fetchone() == (True,):
                async with connect_postgres(url, ERRORS) as other:
                    await AsyncPostgresSaver(other).setup()
                return
        await asyncio.sleep(0.1)
    raise CheckpointError("Another citebot is making the tables of conversations in Postgres. Start again in a moment.")
