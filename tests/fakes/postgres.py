"""Databases of the Postgres on this machine: made for one test and dropped after it, or lent to one after the other."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache

import psycopg

from agent import Database
from agent.persistence.database import Outcome, Statement
from agent.persistence.postgres.database import Postgres, PostgresDatabase
from agent.persistence.postgres.saver import open_postgres_saver
from bot.jobs.job_queue import open_job_queue
from bot.storage.database import open_postgres
from tests.needs import SERVER


@asynccontextmanager
async def make_database() -> AsyncIterator[str]:
    """Make an empty database, and give its address; tests that use it are marked as needing Postgres."""
    server = await psycopg.AsyncConnection.connect(f"{SERVER}/postgres", autocommit=True)
    name = f"citebot_{uuid.uuid4().hex[:12]}"
    async with server:
        await server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{SERVER}/{name}"
        finally:
            await server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass
class _Prepared:
    """A database of this process with every table, and which of them are empty to begin with."""

    name: str
    tables: Sequence[str]


@cache
def _list_prepared() -> list[_Prepared]:
    """Return the prepared databases that nobody uses, which is one list in a process."""
    return []


@asynccontextmanager
async def lend_database() -> AsyncIterator[str]:
    """Lend a database with every table and no rows, and its address; it is emptied and lent again.

    For tests that change rows alone: those of the layout make a database of their own.
    """
    free = _list_prepared()
    prepared = free.pop() if free else await _prepare_database()
    yield f"{SERVER}/{prepared.name}"
    async with await psycopg.AsyncConnection.connect(f"{SERVER}/{prepared.name}", autocommit=True) as connection:
        await connection.execute(f"TRUNCATE {', '.join(prepared.tables)} RESTART IDENTITY")
    free.append(prepared)


async def _prepare_database() -> _Prepared:
    name = f"citebot_{uuid.uuid4().hex[:12]}"
    async with await psycopg.AsyncConnection.connect(f"{SERVER}/postgres", autocommit=True) as server:
        await server.execute(f"CREATE DATABASE {name}")
    url = f"{SERVER}/{name}"
    async with open_postgres(url), open_postgres_saver(url), open_job_queue(url):
        pass
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        found = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [str(row[0]) for row in await found.fetchall()]
        counts = {table: await connection.execute(f"SELECT 1 FROM {table} LIMIT 1") for table in tables}
        return _Prepared(name, [table for table, rows in counts.items() if not await rows.fetchall()])


def drop_prepared_databases() -> None:
    """Drop what this process has prepared."""
    if free := _list_prepared():
        with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as server:
            while free:
                server.execute(f"DROP DATABASE {free.pop().name} WITH (FORCE)")


class ClockedPostgres(Postgres):
    """A database whose leases go by the clock of a test, not by the server's."""

    def __init__(self, database: PostgresDatabase, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def run_all(
        self, statements: Sequence[Statement], *, lock: str = "", only_if: Statement | None = None
    ) -> Outcome | None:
        now = f"CAST({self._now()!r} AS DOUBLE PRECISION)"
        clocked = [(sql.replace("lease_clock()", now), values) for sql, values in statements]
        return await self._database.run_all(clocked, lock=lock, only_if=only_if)


@asynccontextmanager
async def open_clocked_postgres(url: str, now: Callable[[], float]) -> AsyncIterator[Database]:
    """Open a database whose leases go by a clock of the test."""
    async with open_postgres(url) as database:
        yield ClockedPostgres(database, now)
