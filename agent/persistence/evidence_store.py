"""The text of evidence, kept beside the checkpoints: the state of a turn holds only the keys."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from agent.text.storable import make_storable

Result = TypeVar("Result")
Statement = tuple[str, Sequence[Any]]  # SQL, and the values for it


class SqlExecutor(Protocol):
    """A database that runs each statement in a transaction of its own, or several in one."""

    async def write(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement to its end, whatever happens to the caller; raises `CheckpointError`."""

    async def write_all(self, statements: Sequence[Statement]) -> None:
        """Run statements in one transaction: all of them, or none; raises `CheckpointError`."""

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Sequence[Any]]:
        """Run a query; raises `CheckpointError`."""

    async def run_transaction(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do the work in one transaction, to its end, whatever happens to the caller; raises `CheckpointError`."""


class TransactionRunner(ABC):
    """A database of which only the transaction is its own: the other methods of a `SqlExecutor` follow from that."""

    @abstractmethod
    async def run_transaction(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do the work in one transaction, to its end, whatever happens to the caller; raises `CheckpointError`."""

    async def write(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement in a transaction of its own."""
        await self.write_all([(sql, values)])

    async def write_all(self, statements: Sequence[Statement]) -> None:
        """Run statements in one transaction: all of them, or none."""
        await self.run_transaction(lambda db: run_all(db, statements))

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query."""
        return await self.run_transaction(lambda db: db.execute(sql, values).fetchall())


def run_all(db: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Run statements in a transaction that is under way."""
    for sql, values in statements:
        db.execute(sql, values)


class EvidenceStore:
    """Evidence of all conversations in a table, from the first tool call of a turn to its end."""

    def __init__(self, database: SqlExecutor) -> None:
        self._database = database

    def of(self, thread: str) -> ThreadEvidence:
        """Return the evidence of one conversation."""
        return ThreadEvidence(self._database, thread)

    async def drop(self, thread: str) -> None:
        """Forget the evidence of a conversation."""
        await self._database.write(*self.make_drop_statement(thread))

    def make_drop_statement(self, thread: str) -> Statement:
        """Return the statement that forgets the evidence of a conversation, for a transaction with others."""
        return "DELETE FROM evidence WHERE thread = ?", (thread,)


class ThreadEvidence:
    """Evidence of one conversation in the table."""

    def __init__(self, database: SqlExecutor, thread: str) -> None:
        self._database = database
        self._thread = thread

    async def keep(self, key: str, text: str) -> None:
        """Keep a text."""
        await self._database.write(
            "INSERT OR REPLACE INTO evidence VALUES (?, ?, ?)", (self._thread, key, make_storable(text))
        )

    async def texts(self, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the texts that are there."""
        wanted = frozenset(keys)
        if not wanted:
            return {}
        rows = await self._database.rows("SELECT key, text FROM evidence WHERE thread = ?", (self._thread,))
        return {key: text for key, text in rows if key in wanted}
