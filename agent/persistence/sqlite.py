"""A SQLite database: one connection in a separate thread, errors as sentences."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal, TypeVar

from agent.errors import SchemaError
from agent.persistence.database import Database, DatabaseErrors, Outcome, Statement
from agent.persistence.migrations import Schema, migrate_database

_SHRINK_STEP = 500  # pages
_BUSY_STEP = 0.02  # seconds

Result = TypeVar("Result")


class SqliteDatabase(Database):
    """Runs transactions one by one, each to its end even if its caller is cancelled."""

    is_remote = False
    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, connection: sqlite3.Connection, path: Path, name: str, errors: DatabaseErrors) -> None:
        self.path = path
        self._connection = connection
        self._name = name
        self._errors = errors
        # Work in the loop's own threads must not delay a message.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"{name}-database")

    async def run_all(
        self,
        statements: Sequence[Statement],
        *,
        lock: str = "",  # noqa: ARG002 - there is one writer at a time without one as well
        only_if: Statement | None = None,
    ) -> Outcome | None:
        """Run statements in one transaction."""
        return await self._run(lambda: _run_statements(self._connection, statements, only_if))

    async def check(self) -> None:
        """Raise if the file is missing: SQLite would keep writing where nobody can read."""
        if not await asyncio.to_thread(self.path.is_file):
            raise self._errors.failed(
                f"The {self._name} database {self.path} has been taken away. Put it back and restart citebot."
            )

    async def shrink(self) -> None:
        """Give free pages back to the disk in small steps, so that other writers wait for one step at most."""
        ((free,),) = await self.rows("PRAGMA freelist_count")
        for _ in range(0, free, _SHRINK_STEP):
            # As a script, because it gives back one page a step and a plain statement is stepped once.
            await self._run(lambda: self._connection.executescript(f"PRAGMA incremental_vacuum({_SHRINK_STEP:d})"))

    async def close(self) -> None:
        """Close the connection, once nothing uses it."""
        await self._run(self._connection.close)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work))
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self.path, self._name, self._errors) from error


@asynccontextmanager
async def open_sqlite(
    path: Path,
    schema: Schema,
    errors: DatabaseErrors,
    *,
    prepare: Callable[[sqlite3.Connection], None],
    synchronous: Literal["FULL", "NORMAL"],
    busy_seconds: float = 5.0,
) -> AsyncIterator[SqliteDatabase]:
    """Open a file in the layout of a schema, created if missing, and close it at the end; raises `errors`.

    `prepare` sets up the connection. With `NORMAL`, a power cut (but not a killed process) may lose the last writes.
    """

    def connect() -> sqlite3.Connection:
        path.parent.mkdir(parents=True, exist_ok=True)
        _bring_up(path, schema)
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        try:
            _write_ahead(connection, busy_seconds)
            connection.execute("PRAGMA journal_size_limit = 1048576")
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    try:
        connection = await asyncio.to_thread(connect)
    except SchemaError as error:
        raise errors.failed(str(error)) from error
    except OSError as error:
        raise errors.failed(
            f"The folder of the {schema.name} database {path} cannot be made: {error.strerror}."
        ) from error
    except sqlite3.Error as error:
        raise explain_sqlite_error(error, path, schema.name, errors) from error
    database = SqliteDatabase(connection, path, schema.name, errors)
    try:
        yield database
    finally:
        await database.close()


def explain_sqlite_error(error: sqlite3.Error, path: Path, name: str, errors: DatabaseErrors) -> Exception:
    """Return the error to raise instead, which says what to do."""
    reason = str(error).lower()
    if "locked" in reason or "busy" in reason:
        return errors.failed(f"Another process holds the {name} database {path}. Stop it, or wait and try again.")
    if "full" in reason:
        return errors.failed(f"The disk of the {name} database {path} is full. Free some space and try again.")
    if "readonly" in reason or "unable to open" in reason:
        return errors.failed(f"The {name} database {path} cannot be written. Make the file and its folder writable.")
    if "no such" in reason:
        return errors.failed(
            f"The {name} database {path} was not laid out by this version of citebot. Move the file away."
        )
    if "malformed" in reason or "not a database" in reason:
        return errors.failed(
            f"The {name} database {path} is damaged. Move it away, and citebot begins a new one; or restore a backup: "
            "citebot restore FILE --force."
        )
    return errors.failed(f"The {name} database {path} failed: {error}.")


def _run_statements(
    db: sqlite3.Connection, statements: Sequence[Statement], only_if: Statement | None
) -> Outcome | None:
    if only_if is None and len(statements) == 1:
        return _run_statement(db, statements[0])
    db.execute("BEGIN IMMEDIATE")
    try:
        is_wanted = only_if is None or _run_statement(db, only_if).rows
        outcome = Outcome([], 0)
        for statement in statements if is_wanted else ():
            outcome = _run_statement(db, statement)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has ended it already
            db.execute("ROLLBACK")
        raise
    return outcome if is_wanted else None


def _run_statement(db: sqlite3.Connection, statement: Statement) -> Outcome:
    sql, values = statement
    cursor: Any = db.execute(sql, values)
    rows = cursor.fetchall()
    return Outcome(rows, cursor.rowcount)


def _bring_up(path: Path, schema: Schema) -> None:
    """Upgrade a file to this version's layout; leave a damaged one alone, because writing would make it worse."""
    with closing(sqlite3.connect(path)) as db:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"malformed: {verdict}")
    migrate_database(path, schema)


def _write_ahead(db: sqlite3.Connection, busy_seconds: float) -> None:
    """Turn the write-ahead log on; if other processes open a new file too, SQLite itself does not wait for them."""
    give_up = time.monotonic() + busy_seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up:
                raise
            time.sleep(_BUSY_STEP)
        else:
            return
