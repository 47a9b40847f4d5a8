"""Copies the tables of the message database from SQLite to Postgres or back, and compares what arrived."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent import Database
from agent.text.storable import make_storable_in_postgres
from bot.errors import MigrationError

# Data that is meaningless elsewhere, or after every citebot was stopped.
_LEFT_OUT = ("pulse", "leases", "uptimes")
_READ_AT_ONCE = 5_000  # rows
_WRITTEN_AT_ONCE = 200

# What is in a SQLite file; Postgres has the same tables, some with a number more that keeps the order of their rows.
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
_ORDER = "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND column_name IN ('rowid', 'id')"
_NUMBERED = "SELECT pg_get_serial_sequence(?, column_name), column_name FROM information_schema.columns WHERE table_name = ? AND is_identity = 'YES' AND column_name <> 'rowid'"  # noqa: E501


async def list_tables(sqlite: Database) -> dict[str, Sequence[str]]:
    """Return the tables that are copied, and their columns."""
    names = [name for (name,) in await sqlite.rows(_TABLES) if name not in _LEFT_OUT]
    return {name: [column for (column,) in await sqlite.rows(_COLUMNS, (name,))] for name in names}


async def copy_to_postgres(sqlite: Database, postgres: Database, table: str, columns: Sequence[str]) -> int:
    """Copy a table in the order of its rows; return how many there are. Raises `MigrationError`."""
    count = await _copy(sqlite, postgres, table, columns, order="rowid")
    await _compare(sqlite, postgres, table, columns)
    for sequence, column in await postgres.rows(_NUMBERED, (table, table)):  # what comes next has a number of its own
        await postgres.rows(f"SELECT setval(?, max({column})) FROM {table} HAVING max({column}) > 0", (sequence,))  # noqa: S608 - names of columns and tables of ours
    return count


async def copy_to_sqlite(postgres: Database, sqlite: Database, table: str, columns: Sequence[str]) -> int:
    """Copy a table in the order of its rows; return how many there are. Raises `MigrationError`."""
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
    """Raise `MigrationError` unless two tables hold the same rows."""
    if await _sum_up(source, table, columns) != await _sum_up(target, table, columns):
        raise MigrationError(f"The table {table} was not copied correctly. Nothing was changed; report this.")


async def _sum_up(tables: Database, table: str, columns: Sequence[str]) -> tuple[int, int]:
    """Return how many rows a table has, and a sum over what is in them that does not depend on their order."""
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
