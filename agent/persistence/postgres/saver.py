"""Conversations in Postgres: LangGraph's own tables and the evidence beside them, a transaction for each step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from agent.errors import CheckpointError, CheckpointLocked, CheckpointVersion, SchemaError
from agent.persistence.conversation_saver import ConversationSaver, StepCheckpoint, StepWrites
from agent.persistence.evidence_store import USE, RunClaim, Statement, make_claim, make_forget_statements
from agent.persistence.migrations import Schema
from agent.persistence.postgres.connections import Transactions, connect, open_pool
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

# Only the root graph has checkpoints: no node of ours is a graph. Of the values, those stay that the newest one has.
_OLDER = (
    "thread_id = ? AND checkpoint_ns = '' AND checkpoint_id <> "
    "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '')"
)
_UNUSED = """NOT EXISTS (SELECT 1 FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS used
    WHERE checkpoints.thread_id = old.thread_id AND checkpoints.checkpoint_ns = old.checkpoint_ns
    AND used.key = old.channel AND used.value = old.version)"""


class PostgresSaver(ConversationSaver):
    """A checkpointer that uses the library's one for a transaction at a time, each on a connection of its own."""

    clock = "extract(epoch FROM clock_timestamp())"
    side_tables = ("checkpoint_writes", "checkpoint_blobs")

    def __init__(self, database: Transactions) -> None:
        super().__init__()
        self._database = database

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version of a channel that comes after the current one, as the library writes it."""
        from langgraph.checkpoint.postgres.base import BasePostgresSaver

        return BasePostgresSaver.get_next_version(cast("Any", self), current, channel)

    async def write_step(
        self, checkpoint: StepCheckpoint | None, writes: StepWrites | None = None, *, claim: RunClaim | None = None
    ) -> None:
        """Write a checkpoint and then the writes of a task, where the claim lets it."""

        async def write(connection: AsyncConnection[Any]) -> None:
            tables = self._make_tables(connection)
            await self._use_claim(connection, claim)
            if checkpoint is not None:
                await tables.aput(*_clean_checkpoint(checkpoint))
            if writes is not None:
                await tables.aput_writes(*writes._replace(config=_clean_config(writes.config)))

        await self._database.run_transaction(write)

    async def read_step(
        self, config: RunnableConfig, *, after: StepCheckpoint | None, claim: RunClaim | None = None
    ) -> CheckpointTuple | None:
        """Write a checkpoint, and read the newest of the thread, or the one named."""

        async def read(connection: AsyncConnection[Any]) -> CheckpointTuple | None:
            tables = self._make_tables(connection)
            if after is not None:
                await self._use_claim(connection, claim)
                await tables.aput(*_clean_checkpoint(after))
            return await tables.aget_tuple(_clean_config(config))

        return await self._database.run_transaction(read)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - as LangGraph calls it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Read the checkpoints of a thread, the newest first."""

        async def read(connection: AsyncConnection[Any]) -> list[CheckpointTuple]:
            where = _clean_config(config) if config is not None else None
            found = self._make_tables(connection).alist(where, filter=filter, before=before, limit=limit)
            return [each async for each in found]

        for each in await self._database.run_transaction(read):
            yield each

    async def adelete_thread(self, thread_id: str, *, claim: RunClaim | None = None) -> None:
        """Delete a thread and everything in it, where the claim lets it; no run of before writes in it any more."""
        # Who claims the thread meanwhile has to wait, also where it has no row yet.
        take = [] if claim is not None else [self.make_take_statement(make_claim(thread_id))]
        tables = ("checkpoints", *self.side_tables)
        deletions = [(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,)) for table in tables]  # noqa: S608 - constants
        await self.write_all([*take, *deletions, *make_forget_statements(thread_id)], claim=claim)

    async def prune_thread(self, thread_id: str, *more: Statement, claim: RunClaim | None = None) -> None:
        """Keep the newest checkpoint of a thread and drop the rest; only when no run of it is in progress.

        The statements in `more` run in the same transaction, where the claim lets it.
        """
        older = [
            (f"DELETE FROM {table} WHERE {_OLDER}", (thread_id, thread_id))  # noqa: S608 - constants
            for table in ("checkpoint_writes", "checkpoints")
        ]
        unused = f"DELETE FROM checkpoint_blobs AS old WHERE thread_id = ? AND {_UNUSED}"  # noqa: S608 - a constant
        await self.write_all([*older, (unused, (thread_id,)), *more], claim=claim)

    async def shrink(self) -> None:
        """Do nothing: Postgres frees space by itself."""

    async def write_all(self, statements: Sequence[Statement], *, claim: RunClaim | None = None) -> None:
        """Run statements in one transaction, under a claim where there is one: all of them, or none."""

        async def write(connection: AsyncConnection[Any]) -> None:
            await self._use_claim(connection, claim)
            for sql, values in statements:
                await connection.execute(_translate(sql), [make_storable_in_postgres(value) for value in values])

        await self._database.run_transaction(write)

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query."""

        async def read(connection: AsyncConnection[Any]) -> list[tuple[Any, ...]]:
            cursor = await connection.execute(_translate(sql), [make_storable_in_postgres(value) for value in values])
            return await cursor.fetchall()

        return await self._database.run_transaction(read)

    async def _use_claim(self, connection: AsyncConnection[Any], claim: RunClaim | None) -> None:
        """Raise `CheckpointOvertaken` for a run that was; other runs of the thread wait for the transaction to end."""
        if claim is not None:
            values = [make_storable_in_postgres(value) for value in claim]
            cursor = await connection.execute(_translate(USE.format(clock=self.clock)), values)
            claim.check(is_current=bool(await cursor.fetchall()))

    def _make_tables(self, connection: AsyncConnection[Any]) -> AsyncPostgresSaver:
        """Return the library's checkpointer on a connection: it locks itself, so that one for all would be a queue."""
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        return AsyncPostgresSaver(connection, serde=self.serde)


@asynccontextmanager
async def open_postgres_saver(url: str, *, patience: float = _PATIENCE_SECONDS) -> AsyncIterator[PostgresSaver]:
    """Open the conversations in a database, whose tables are made when missing; raises `CheckpointError`.

    `patience` is for how many seconds work waits for a database that does not answer.
    """
    await prepare_postgres_conversations(url)
    async with open_pool(url, patience=patience) as pool:
        yield PostgresSaver(pool)


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


def _translate(sql: str) -> Any:
    return sql.replace("%", "%%").replace("?", "%s")


def _clean_config(config: RunnableConfig) -> RunnableConfig:
    where = config["configurable"]
    return {**config, "configurable": {**where, "thread_id": make_storable_in_postgres(where["thread_id"])}}


def _clean_checkpoint(step: StepCheckpoint) -> StepCheckpoint:
    """Clean the texts that the library puts into JSON; what lies deeper in a value is stored as bytes."""
    values = {channel: make_storable_in_postgres(value) for channel, value in step.checkpoint["channel_values"].items()}
    checkpoint = cast("Any", {**step.checkpoint, "channel_values": values})
    return step._replace(config=_clean_config(step.config), checkpoint=checkpoint)
