"""Conversations in Postgres: LangGraph's own tables with the rows and the evidence beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from agent.errors import CheckpointError, CheckpointLocked, CheckpointVersion, SchemaError
from agent.persistence.conversation_saver import ConversationSaver, make_serializer
from agent.persistence.evidence_store import RunClaim, Statement
from agent.persistence.migrations import Schema
from agent.persistence.postgres.connections import Transactions, connect, explain_error, open_pool
from agent.persistence.postgres_migrations import migrate_postgres
from agent.text.storable import make_storable_in_postgres
from indexer.installation import describe_extra

if TYPE_CHECKING:  # comes with the extra `cluster`
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection

# "citechkp": whoever lets LangGraph make its tables holds this. A statement with values would keep its snapshot.
_TRY_LOCK = f"SELECT pg_try_advisory_xact_lock({0x63697465_63686B70})"
_LOCK_SECONDS = 60.0
_PATIENCE_SECONDS = 30.0  # a restart of Postgres, or a change to its standby, takes less


class PostgresConversations(ConversationSaver):
    """Conversations in a database, with a checkpointer for each run over the same few connections."""

    clock = "extract(epoch FROM clock_timestamp())"
    checkpoint_tables = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")

    def __init__(self, database: Transactions) -> None:
        self._database = database

    @asynccontextmanager
    async def open_checkpoints(self) -> AsyncIterator[AsyncPostgresSaver]:
        """Open a checkpointer for one run: each does one thing at a time, so that one for all would be a queue."""
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg import Error

        try:
            yield AsyncPostgresSaver(self._database.connections, serde=make_serializer())
        except Error as error:
            raise explain_error(error) from error

    async def shrink(self) -> None:
        """Do nothing: Postgres frees space by itself."""

    async def write_all(
        self, statements: Sequence[Statement], *, claim: RunClaim | None = None
    ) -> list[tuple[Any, ...]]:
        """Run statements in one transaction, under a claim where there is one: all of them, or none."""

        async def write(connection: AsyncConnection[Any]) -> list[tuple[Any, ...]]:
            if claim is not None:  # other runs of the conversation wait for the transaction to end
                used = await connection.execute(*_translate(self.make_use_statement(claim)))
                claim.check(is_current=bool(await used.fetchall()))
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor = await connection.execute(*_translate(statement))
                gives_rows = statement[0].startswith("SELECT") or "RETURNING" in statement[0]
                rows = await cursor.fetchall() if gives_rows else []
            return rows

        return await self._database.run_transaction(write)


@asynccontextmanager
async def open_postgres_saver(url: str, *, patience: float = _PATIENCE_SECONDS) -> AsyncIterator[PostgresConversations]:
    """Open the conversations in a database, whose tables are made when missing; raises `CheckpointError`.

    `patience` is for how many seconds work waits for a database that does not answer.
    """
    await prepare_postgres_conversations(url)
    async with open_pool(url, patience=patience) as pool:
        yield PostgresConversations(pool)


def load_postgres_schema() -> Schema:
    """Return the layout of the tables beside those of LangGraph."""
    return Schema.load("conversation", "agent.persistence", "postgres")


async def prepare_postgres_conversations(url: str) -> None:
    """Bring the tables to the layout of this version, made when missing; raises `CheckpointError`."""
    if find_spec("psycopg_pool") is None or find_spec("langgraph.checkpoint.postgres") is None:
        raise CheckpointError(
            f"DATABASE_URL needs the extra `cluster`, which is not installed. {describe_extra('cluster')}"
        )
    try:
        async with connect(url) as connection:
            await migrate_postgres(connection, load_postgres_schema())
            await _create_checkpoint_tables(connection, url)
    except SchemaError as error:
        raise CheckpointVersion(str(error)) from error


async def _create_checkpoint_tables(connection: AsyncConnection[Any], url: str) -> None:
    """Let LangGraph make its tables, of two processes that start at once one after the other.

    It builds indexes that wait for every transaction that looks at the database. One that waits for a lock does, so
    nobody waits: each asks again. The lock is of a transaction, for a pooler of transactions knows no other.
    """
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    for _ in range(int(_LOCK_SECONDS / 0.1)):
        async with connection.transaction():
            cursor = await connection.execute(cast("Any", _TRY_LOCK))
            if await cursor.fetchone() == (True,):
                async with connect(url) as other:
                    await AsyncPostgresSaver(other).setup()
                return
        await asyncio.sleep(0.1)
    raise CheckpointLocked(
        "Another citebot is making the tables of conversations in Postgres. Start again in a moment."
    )


def _translate(statement: Statement) -> tuple[Any, Sequence[Any]]:
    sql, values = statement
    return sql.replace("%", "%%").replace("?", "%s"), [make_storable_in_postgres(value) for value in values]
