"""The conversation database of a single question: in memory, without checkpoints, gone with the answer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.persistence.evidence_store import ERRORS, RunClaim, RunStore
from agent.persistence.migrations import load_conversation_schema, run_statement
from agent.persistence.sqlite import SqliteDatabase

_IN_MEMORY = Path(":memory:")


class MemoryStore(RunStore):
    """The evidence of one question; a crash loses it, and there is nobody to continue it."""

    async def forget(self, thread: str, claim: RunClaim | None = None) -> None:
        """Do nothing: no conversation is remembered."""


@asynccontextmanager
async def open_memory_store() -> AsyncIterator[MemoryStore]:
    """Open a database with the tables that a question needs, and close it at the end."""
    database = SqliteDatabase(await asyncio.to_thread(_create_tables), _IN_MEMORY, "conversation", ERRORS)
    try:
        yield MemoryStore(database)
    finally:
        await database.close()


def _create_tables() -> sqlite3.Connection:
    connection = sqlite3.connect(_IN_MEMORY, isolation_level=None, check_same_thread=False)
    for statement in load_conversation_schema().list_statements():
        run_statement(connection, statement)
    return connection
