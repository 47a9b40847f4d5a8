"""The connection of the conversation database: work on it is one transaction, and one trip to its thread."""

from __future__ import annotations

import logging
import sqlite3
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import aiosqlite

log = logging.getLogger(__name__)
T = TypeVar("T")

_ROWS_AT_ONCE = 64


class TransactionConnection(aiosqlite.Connection):
    """An `aiosqlite.Connection` that can do several things in its thread without coming back in between."""

    def __init__(self, path: Path, *, busy_seconds: float) -> None:
        super().__init__(lambda: sqlite3.connect(path, timeout=busy_seconds), _ROWS_AT_ONCE)

    async def run_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do all of the work in one transaction, or nothing of it; raises `sqlite3.Error`.

        It is done to its end even when the caller is cancelled meanwhile: a run that is stopped cannot leave the
        connection inside a transaction, in which everybody's next statement would fail.
        """
        transaction = _Transaction(self._conn, work)
        try:
            done: T = await self._execute(transaction)  # type: ignore[no-untyped-call]
        except CancelledError:
            transaction.has_listener = False
            transaction.complain()
            raise
        return done


@dataclass
class _Transaction(Generic[T]):
    """Work for the connection's thread. Its error is for whoever waits for it, and for the log if nobody does."""

    connection: sqlite3.Connection
    work: Callable[[sqlite3.Connection], T]
    has_listener: bool = True
    error: sqlite3.Error | None = None

    def __call__(self) -> T:
        try:
            with self.connection:
                return self.work(self.connection)
        except sqlite3.Error as error:
            self.error = error
            self.complain()
            raise

    def complain(self) -> None:
        """Log the error if nobody else will; called by both threads, as either may be the later one."""
        if self.error is not None and not self.has_listener:
            log.warning("the last write of a cancelled run failed: %s", self.error)
