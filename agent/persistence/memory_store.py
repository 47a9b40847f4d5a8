"""The conversation database of a single question: in memory, without checkpoints, gone with the answer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from agent.persistence.conversation_schema import load_conversation_schema
from agent.persistence.evidence_store import RunClaim, Statement
from agent.persistence.migrations import run_statement
from agent.persistence.sqlite_transactions import TransactionRunner

T = TypeVar("T")


class MemoryStore(TransactionRunner):
    """The evidence of one question; a crash loses it, and there is nobody to continue it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = asyncio.Lock()

    async def run_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in one transaction."""
        async with self._lock:
            return await asyncio.to_thread(self._run, work)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._connection:
            return work(self._connection)

    def flush_next(self, thread_id: str) -> None:
        """Do nothing: there are no checkpoints to write."""

    async def prune_thread(self, thread_id: str, *more: Statement, claim: RunClaim | None = None) -> None:  # noqa: ARG002
        """Run the statements; there are no checkpoints to drop."""
        await self.write_all(more, claim=claim)

    async def adelete_thread(self, thread_id: str, *, claim: RunClaim | None = None) -> None:
        """Do nothing: there are no checkpoints to drop."""


def _create_tables(db: sqlite3.Connection) -> None:
    for statement in load_conversation_schema().list_statements():
        run_statement(db, statement)


@asynccontextmanager
async def open_memory_store() -> AsyncIterator[MemoryStore]:
    """Open a database with the tables that a question needs, and close it at the end."""
    connection = await asyncio.to_thread(sqlite3.connect, ":memory:", check_same_thread=False)
    try:
        store = MemoryStore(connection)
        await store.run_transaction(_create_tables)
        yield store
    finally:
        await asyncio.to_thread(connection.close)
