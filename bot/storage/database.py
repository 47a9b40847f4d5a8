"""The SQLite database of the chat side: one connection, every statement a transaction, errors as sentences."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Protocol, cast

import aiosqlite

from agent import Schema, SchemaError, migrate_database
from bot.clock import read_uptime
from bot.errors import InboxError

INBOX_FILE = "inbox.sqlite"  # in CITEBOT_HOME

_SHRINK_STEP = 500  # pages
_BUSY_STEP = 0.02  # seconds
_LONGEST_LEASE = 3_600.0  # seconds; longer than any that is given


Values = Sequence[Any] | Mapping[str, Any]  # for each `?` of a statement, or for each `:name`


class SqlDatabase(Protocol):
    """A database that runs each statement in a transaction of its own; all methods raise `InboxError`.

    Statements are written so that SQLite and Postgres take them. What the two have no common word for are functions
    that Postgres has in its schema, and SQLite is given when it is opened: `lease_clock()` is the time that leases go
    by, and `has_handle(handles, channel, message)` says whether a message is among those of a reply.

    `is_remote` says that others may reach it where this process does not.
    """

    is_remote: bool

    async def write(self, sql: str, values: Values = ()) -> int:
        """Change rows and return how many were changed."""

    async def rows(self, sql: str, values: Values = (), *, lock: str = "") -> list[tuple[Any, ...]]:
        """Run a query, or a change that returns rows.

        Of the statements that name the same lock, in all processes, each sees what the one before it has written.
        """

    async def row(self, sql: str, values: Values = (), *, lock: str = "") -> tuple[Any, ...] | None:
        """Run a query and return its first row."""

    async def check(self) -> None:
        """Raise `InboxError` where what is written would be lost without an error."""

    async def shrink(self) -> None:
        """Give space that is free back to the disk."""


class Database:
    """Runs statements. Each is atomic and is carried out even when its caller is cancelled meanwhile."""

    is_remote = False

    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    async def write(self, sql: str, values: Values = ()) -> int:
        """Change rows and return how many were changed."""
        try:
            async with self._connection.execute(sql, cast("Any", values)) as cursor:
                return cursor.rowcount
        except sqlite3.Error as error:
            raise explain_error(error, self._path) from error

    async def check(self) -> None:
        """Raise `InboxError` if the file is gone: SQLite would keep writing to what nobody can ever read."""
        if not await asyncio.to_thread(self._path.is_file):
            raise InboxError(f"The message database {self._path} has been taken away. Put it back and restart citebot.")

    async def rows(self, sql: str, values: Values = (), *, lock: str = "") -> list[tuple[Any, ...]]:  # noqa: ARG002
        """Run a query, or a change that returns rows; there is one writer at a time without a lock as well."""
        try:
            found = await self._connection.execute_fetchall(sql, cast("Any", values))
            return [tuple(row) for row in found]
        except sqlite3.Error as error:
            raise explain_error(error, self._path) from error

    async def row(self, sql: str, values: Values = (), *, lock: str = "") -> tuple[Any, ...] | None:
        """Run a query and return its first row."""
        return next(iter(await self.rows(sql, values, lock=lock)), None)

    async def shrink(self) -> None:
        """Give free pages back to the disk, some at a time: what else is to be written waits for one step at most."""
        ((free,),) = await self.rows("PRAGMA freelist_count")
        try:
            for _ in range(0, free, _SHRINK_STEP):
                # As a script, because it gives back one page a step and a plain statement is stepped once.
                async with self._connection.executescript(f"PRAGMA incremental_vacuum({_SHRINK_STEP:d})"):
                    pass
        except sqlite3.Error as error:
            raise explain_error(error, self._path) from error


@asynccontextmanager
async def open_database(
    path: Path, *, busy_seconds: float = 5.0, lease_clock: Callable[[], float] | None = None
) -> AsyncIterator[Database]:
    """Open the database, made when missing, and close it at the end; raises `InboxError`.

    `lease_clock` tells the time that leases go by, in seconds since the epoch; without one, that passes evenly for all
    processes of the machine, whatever is done to its clock.
    """
    await asyncio.to_thread(_try_opening, path)
    # Without an isolation level every statement is a transaction of its own.
    connection = aiosqlite.connect(path, timeout=busy_seconds, isolation_level=None)
    try:
        await _prepare(connection, path, busy_seconds)
        await connection.create_function("lease_clock", 0, lease_clock or await _make_lease_clock(connection, path))
        await connection.create_function("has_handle", 3, _has_handle, deterministic=True)
        yield Database(connection, path)
    finally:
        await connection.close()


async def _make_lease_clock(connection: aiosqlite.Connection, path: Path) -> Callable[[], float]:
    """Count from when this machine came up, as its clock said when citebot was first started since.

    Leases from before that may end at a time that is far away for a clock that was wrong then, or is wrong now.
    """
    uptime = read_uptime()
    if uptime is None:
        return time.time
    boot, seconds = uptime
    try:
        await connection.execute(
            "INSERT INTO uptimes (boot, began) VALUES (?, ?) ON CONFLICT DO NOTHING", (boot, time.time() - seconds)
        )
        ((began,),) = await connection.execute_fetchall("SELECT began FROM uptimes WHERE boot = ?", (boot,))
        longest = began + seconds + _LONGEST_LEASE
        for table in ("inbox", "leases"):
            await connection.execute(f"UPDATE {table} SET lease_until = 0 WHERE lease_until > ?", (longest,))  # noqa: S608
    except sqlite3.Error as error:
        raise explain_error(error, path) from error
    return lambda: began + (read_uptime() or uptime)[1]


def _has_handle(handles: str, channel: str, message: str) -> bool:
    """Whether handles, written as JSON, have one of a message; most that are looked through do not."""
    return json.dumps(message) in handles and any(
        handle["id"] == message and handle["channel"] == channel for handle in json.loads(handles)
    )


def load_message_schema() -> Schema:
    """Return the layout of the database."""
    return Schema.load("message", "bot.storage")


def _try_opening(path: Path) -> None:
    """Bring the database to the layout of this version, made when missing.

    Fail here when the file cannot be opened: aiosqlite's thread outlives a connection that was never opened. A damaged
    one is refused and left as it is: to write to it would make that worse.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as db:
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"malformed: {verdict}")
        migrate_database(path, load_message_schema())
    except SchemaError as error:
        raise InboxError(str(error)) from error
    except OSError as error:
        raise InboxError(f"The folder of the message database {path} cannot be made: {error.strerror}.") from error
    except sqlite3.Error as error:
        raise explain_error(error, path) from error


async def _prepare(connection: aiosqlite.Connection, path: Path, busy_seconds: float) -> None:
    try:
        await connection
        await _write_ahead(connection, busy_seconds)
        await connection.execute("PRAGMA journal_size_limit = 1048576")
        # What was acknowledged must outlive a power cut as well.
        await connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raise explain_error(error, path) from error


async def _write_ahead(connection: aiosqlite.Connection, busy_seconds: float) -> None:
    """Turn the write-ahead log on; where other processes open a new file too, SQLite itself does not wait for them."""
    give_up = time.monotonic() + busy_seconds
    while True:
        try:
            await connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up:
                raise
            await asyncio.sleep(_BUSY_STEP)
        else:
            return


def explain_error(error: sqlite3.Error, path: Path) -> InboxError:
    """Explain an error of SQLite in a sentence that says what to do."""
    reason = str(error).lower()
    if "locked" in reason or "busy" in reason:
        return InboxError(f"Another process holds the message database {path}. Stop it, or wait and try again.")
    if "full" in reason:
        return InboxError(f"The disk of the message database {path} is full. Free some space and try again.")
    if "readonly" in reason or "unable to open" in reason:
        return InboxError(f"The message database {path} cannot be written. Check the permissions of its folder.")
    if "malformed" in reason or "not a database" in reason:
        return InboxError(
            f"The message database {path} is damaged. Move it away, and citebot begins a new one; or restore a "
            "backup: citebot restore FILE --force."
        )
    return InboxError(f"The message database {path} failed: {error}.")
