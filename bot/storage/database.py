"""The chat side's database: Postgres if its address is set, else SQLite in the data folder."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from agent import (
    Database,
    DatabaseErrors,
    PostgresDatabase,
    PostgresTransaction,
    Schema,
    SqliteDatabase,
    connect_postgres,
    open_postgres_database,
    open_sqlite,
)
from bot.clock import Clock, read_uptime
from bot.errors import InboxError

INBOX_FILE = "inbox.sqlite"  # in CITEBOT_HOME
ERRORS = DatabaseErrors(failed=InboxError, unreachable=InboxError)

_LONGEST_LEASE = 3_600.0  # seconds; longer than any that is given
_CONNECTIONS = 8


class Table:
    """A table, or several: what is asked of them, by the clock of this process."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock


def open_store(home: Path, url: SecretStr | None) -> AbstractAsyncContextManager[Database]:
    """Open the database while the context is open; raises `InboxError`.

    SQLite and Postgres both accept the statements. Two functions cover the differences, defined in Postgres's schema
    and registered in SQLite: `lease_clock()` is the clock for leases, and `has_handle(handles, channel, message)` says
    whether a message belongs to a reply.
    """
    return open_database(home / INBOX_FILE) if url is None else open_postgres(url.get_secret_value())


def has_store(home: Path, url: SecretStr | None) -> bool:
    """Whether anything was ever stored; for Postgres, assume yes, because it would have to be asked."""
    return url is not None or (home / INBOX_FILE).is_file()


def open_database(
    path: Path, *, busy_seconds: float = 5.0, lease_clock: Callable[[], float] | None = None
) -> AbstractAsyncContextManager[SqliteDatabase]:
    """Open the file, creating it if missing, for as long as the context is entered; raises `InboxError`.

    `lease_clock` returns the time for leases in seconds since the epoch; by default, it passes
    evenly for all processes of the machine, whatever happens to its clock.
    """

    def add_functions(db: sqlite3.Connection) -> None:
        db.create_function("lease_clock", 0, lease_clock or _make_lease_clock(db))
        db.create_function("has_handle", 3, _has_handle, deterministic=True)

    # Acknowledged messages must outlive a power cut as well.
    return open_sqlite(
        path, load_message_schema(), ERRORS, prepare=add_functions, synchronous="FULL", busy_seconds=busy_seconds
    )


def open_postgres(url: str) -> AbstractAsyncContextManager[PostgresDatabase]:
    """Connect to a database for as long as the context is entered; raises `InboxError`."""
    return open_postgres_database(url, load_postgres_schema(), ERRORS, connections=_CONNECTIONS, patience=0)


@asynccontextmanager
async def open_transaction(url: str) -> AsyncIterator[PostgresTransaction]:
    """Connect to a database as `open_postgres` does, for one transaction of unlimited duration."""
    async with open_postgres(url):
        pass  # it has brought the tables to the layout of this version
    async with connect_postgres(url, ERRORS) as connection, connection.transaction():
        yield PostgresTransaction(connection, ERRORS)


def load_message_schema() -> Schema:
    """Return the layout of the file."""
    return Schema.load("message", "bot.storage")


def load_postgres_schema() -> Schema:
    """Return the layout of the tables in Postgres."""
    return Schema.load("message", "bot.storage", "postgres")


def _make_lease_clock(db: sqlite3.Connection) -> Callable[[], float]:
    """Count from the boot of this machine, by its clock at citebot's first start since.

    If the clock was wrong then, or is wrong now, earlier leases may end at odd times.
    """
    uptime = read_uptime()
    if uptime is None:
        return time.time
    boot, seconds = uptime
    db.execute("INSERT INTO uptimes (boot, began) VALUES (?, ?) ON CONFLICT DO NOTHING", (boot, time.time() - seconds))
    ((began,),) = db.execute("SELECT began FROM uptimes WHERE boot = ?", (boot,)).fetchall()
    longest = began + seconds + _LONGEST_LEASE
    for table in ("inbox", "leases"):
        db.execute(f"UPDATE {table} SET lease_until = 0 WHERE lease_until > ?", (longest,))  # noqa: S608 - constants
    return lambda: began + (read_uptime() or uptime)[1]


def _has_handle(handles: str, channel: str, message: str) -> bool:
    """Whether handles, written as JSON, have one of a message; most do not."""
    return json.dumps(message) in handles and any(
        handle["id"] == message and handle["channel"] == channel for handle in json.loads(handles)
    )
