"""Moves the messages and conversations of a data folder to Postgres, or back: all of them, or nothing."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import (
    APPLICATION_NAME,
    ConversationCounts,
    Database,
    PostgresTransaction,
    copy_conversations_to_postgres,
    copy_conversations_to_sqlite,
    prepare_postgres_conversations,
)
from agent.text.storable import make_storable_in_postgres
from bot.errors import MigrationError
from bot.maintenance.disk_usage import CONVERSATIONS
from bot.storage.data_folder_access import hold_exclusive_lock
from bot.storage.database import INBOX_FILE, open_database, open_transaction
from indexer import copy_database

# Data that is meaningless elsewhere, or after every citebot was stopped.
_LEFT_OUT = ("pulse", "leases", "uptimes")
_READ_AT_ONCE = 5_000  # rows
_WRITTEN_AT_ONCE = 200

# The tables of a SQLite file; Postgres has the same, some with a number that keeps the order of their rows.
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
_ORDER = "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND column_name IN ('rowid', 'id')"
_NUMBERED = "SELECT pg_get_serial_sequence(?, column_name), column_name FROM information_schema.columns WHERE table_name = ? AND is_identity = 'YES' AND column_name <> 'rowid'"  # noqa: E501


async def list_tables(sqlite: Database) -> dict[str, Sequence[str]]:
    """Return the tables that are copied, and their columns."""
    names = [name for (name,) in await sqlite.rows(_TABLES) if name not in _LEFT_OUT]
    return {name: [column for (column,) in await sqlite.rows(_COLUMNS, (name,))] for name in names}


async def copy_to_postgres(sqlite: Database, postgres: Database, table: str, columns: Sequence[str]) -> int:
    """Copy a table in the order of its rows; return their number. Raises `MigrationError`."""
    count = await _copy(sqlite, postgres, table, columns, order="rowid")
    await _compare(sqlite, postgres, table, columns)
    for sequence, column in await postgres.rows(_NUMBERED, (table, table)):  # the next row gets a new number
        await postgres.rows(f"SELECT setval(?, max({column})) FROM {table} HAVING max({column}) > 0", (sequence,))  # noqa: S608 - names of columns and tables of ours
    return count


async def copy_to_sqlite(postgres: Database, sqlite: Database, table: str, columns: Sequence[str]) -> int:
    """Copy a table in the order of its rows; return their number. Raises `MigrationError`."""
    numbered = [column for (column,) in await postgres.rows(_ORDER, (table,))]
    count = await _copy(postgres, sqlite, table, columns, order=numbered[0] if numbered else ", ".join(columns))
    await _compare(postgres, sqlite, table, columns)
    return count


async def _copy(source: Database, target: Database, table: str, columns: Sequence[str], *, order: str) -> int:
    count = 0
    row = f"({', '.join('?' * len(columns))})"
    async for read in _read(source, table, columns, order=order):
        for start in range(0, len(read), _WRITTEN_AT_ONCE):
            batch = read[start : start + _WRITTEN_AT_ONCE]
            values = [value for each in batch for value in each]
            rows = ", ".join([row] * len(batch))
            await target.write(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {rows}", values)  # noqa: S608 - as above
        count += len(read)
    return count


async def _compare(source: Database, target: Database, table: str, columns: Sequence[str]) -> None:
    """Raise `MigrationError` unless two tables have the same rows."""
    if await _sum_up(source, table, columns) != await _sum_up(target, table, columns):
        raise MigrationError(f"The table {table} was not copied correctly. Nothing was changed; report this.")


async def _sum_up(tables: Database, table: str, columns: Sequence[str]) -> tuple[int, int]:
    """Return a table's number of rows, and a checksum of its contents that ignores their order."""
    count, total = 0, 0
    async for batch in _read(tables, table, columns, order=", ".join(columns)):
        for row in batch:
            cleaned = repr([make_storable_in_postgres(value) for value in row]).encode()
            count, total = count + 1, total + int.from_bytes(hashlib.sha256(cleaned).digest())
    return count, total % 2**256


async def _read(
    tables: Database, table: str, columns: Sequence[str], *, order: str
) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
    sql = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order} LIMIT {_READ_AT_ONCE} OFFSET ?"  # noqa: S608 - as above
    start = 0
    while batch := await tables.rows(sql, (start,)):
        yield batch
        start += len(batch)


Say = Callable[[str], None]

DRAFT = ".migrating"  # next to the files, so that moving is a rename
_STEP = 500  # conversations after which progress is told
_LEAVING_SECONDS = 2.0  # after which the server no longer lists a connection that was closed
_CONVERSATION_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "evidence")
_OTHERS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = ? AND pid <> pg_backend_pid()"""


@dataclass(frozen=True, kw_only=True, slots=True)
class MigrationReport:
    """The number of moved rows per table, and of moved conversations."""

    tables: Mapping[str, int] = field(default_factory=dict)
    conversations: ConversationCounts


async def move_to_postgres(home: Path, url: str, say: Say) -> MigrationReport:
    """Copy a data folder to an empty database; the folder is unchanged.

    Raises `MigrationError`, `BackupError` while a citebot uses the folder, or the errors of either
    database.
    """
    with _hold_draft(home) as draft:
        present = [name for name in (INBOX_FILE, CONVERSATIONS) if (home / name).exists()]
        if not present:
            raise MigrationError(f"There is nothing to move in {home}. CITEBOT_HOME names another data folder.")
        for name in present:  # the copies are brought to the newest layout, the files are not
            await asyncio.to_thread(_copy_file, home / name, draft / name)
        await prepare_postgres_conversations(url)
        async with (
            open_database(draft / INBOX_FILE) as source,
            open_transaction(url) as target,
        ):
            tables = await list_tables(source)
            await _take_alone(target, tables)
            counts = {}
            for table, columns in tables.items():
                if await target.rows(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608 - a table of ours
                    raise MigrationError(f"The database holds rows in {table} already. Name one that is empty.")
                counts[table] = await copy_to_postgres(source, target, table, columns)
                say(f"{table}: {counts[table]:,} rows")
            copied = await copy_conversations_to_postgres(draft / CONVERSATIONS, target, _report_steps(say))
    return MigrationReport(tables=counts, conversations=copied)


async def move_to_sqlite(url: str, home: Path, say: Say) -> MigrationReport:
    """Copy a database to a data folder without messages and conversations; the database is unchanged.

    Raises `MigrationError`, `BackupError` while a citebot uses the folder, or the errors of either
    database.
    """
    with _hold_draft(home) as draft:
        if present := [name for name in (INBOX_FILE, CONVERSATIONS) if (home / name).exists()]:
            raise MigrationError(f"{home} holds {present[0]} already. Move it away, or name another CITEBOT_HOME.")
        await prepare_postgres_conversations(url)
        async with open_transaction(url) as source:
            async with open_database(draft / INBOX_FILE) as target:
                tables = await list_tables(target)
                await _take_alone(source, tables)
                counts = {}
                for table, columns in tables.items():
                    counts[table] = await copy_to_sqlite(source, target, table, columns)
                    say(f"{table}: {counts[table]:,} rows")
            copied = await copy_conversations_to_sqlite(source, draft / CONVERSATIONS, _report_steps(say))
        if not any(counts.values()) and not copied.conversations:
            raise MigrationError("There is nothing to move in the database that DATABASE_URL names.")
        for name in (CONVERSATIONS, INBOX_FILE):  # closed, they have no log beside them
            (draft / name).rename(home / name)
    return MigrationReport(tables=counts, conversations=copied)


@contextmanager
def _hold_draft(home: Path) -> Iterator[Path]:
    """Lock a data folder exclusively, with a folder for drafts in it."""
    with hold_exclusive_lock(home):
        draft = home / DRAFT
        shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed at it
        draft.mkdir(mode=0o700)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _copy_file(source: Path, target: Path) -> None:
    try:
        copy_database(source, target)
    except sqlite3.Error as error:
        raise MigrationError(f"{source} cannot be read ({error}). Nothing was changed.") from error


async def _take_alone(transaction: PostgresTransaction, tables: Mapping[str, object]) -> None:
    """Prevent other writes until the transaction ends; `MigrationError` if a citebot uses the database."""
    await transaction.write("SET LOCAL lock_timeout = '5s'")
    for _ in range(int(_LEAVING_SECONDS / 0.1)):
        await transaction.rows("SELECT pg_stat_clear_snapshot()")
        ((others,),) = await transaction.rows(_OTHERS, (APPLICATION_NAME,))
        if not others:
            await transaction.write(f"LOCK TABLE {', '.join([*tables, *_CONVERSATION_TABLES])} IN EXCLUSIVE MODE")
            return
        await asyncio.sleep(0.1)
    raise MigrationError("Another citebot is connected to the database. Stop every one that uses it, and try again.")


def _report_steps(say: Say) -> Callable[[int, int], None]:
    def report(done: int, total: int) -> None:
        if done % _STEP == 0 or done == total:
            say(f"conversations: {done:,} of {total:,}")

    return report
