"""A SQLite database that work is done in by transactions, each in a thread."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agent.persistence.evidence_store import USE, RunClaim, SqlExecutor, Statement

CLOCK = "((julianday('now') - 2440587.5) * 86400.0)"

Result = TypeVar("Result")


class TransactionRunner(SqlExecutor):
    """A database of which only the transaction is its own: the other methods of a `SqlExecutor` follow from that."""

    clock = CLOCK

    @abstractmethod
    async def run_transaction(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do the work in one transaction, to its end, whatever happens to the caller; raises `CheckpointError`."""

    async def write_all(self, statements: Sequence[Statement], *, claim: RunClaim | None = None) -> None:
        """Run statements in one transaction, under a claim where there is one: all of them, or none."""

        def write(db: sqlite3.Connection) -> None:
            use_claim(db, claim)
            run_all(db, statements)

        await self.run_transaction(write)

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query."""
        return await self.run_transaction(lambda db: db.execute(sql, values).fetchall())


def run_all(db: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Run statements in a transaction that is in progress."""
    for sql, values in statements:
        db.execute(sql, values)


def use_claim(db: sqlite3.Connection, claim: RunClaim | None) -> None:
    """Raise `CheckpointOvertaken` for a run that was; nobody else writes until the transaction ends."""
    if claim is not None:
        used = db.execute(USE.format(clock=CLOCK), claim).fetchall()
        claim.check(is_current=bool(used))
