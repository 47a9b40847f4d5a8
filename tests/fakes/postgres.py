"""Databases of the Postgres on this machine: each is made for one test, and dropped after it."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from bot.storage.database import SqlDatabase, Values
from bot.storage.postgres import PostgresDatabase, open_postgres

SERVER = os.environ.get("CITEBOT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")


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


class ClockedPostgres:
    """A database whose leases go by the clock of a test, not by the server's."""

    is_remote = True

    def __init__(self, database: PostgresDatabase, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def write(self, sql: str, values: Values = ()) -> int:
        return await self._database.write(self._tell_time(sql), values)

    async def rows(self, sql: str, values: Values = (), *, lock: str = "") -> list[tuple[Any, ...]]:
        return await self._database.rows(self._tell_time(sql), values, lock=lock)

    async def row(self, sql: str, values: Values = (), *, lock: str = "") -> tuple[Any, ...] | None:
        return await self._database.row(self._tell_time(sql), values, lock=lock)

    async def check(self) -> None:
        await self._database.check()

    async def shrink(self) -> None:
        await self._database.shrink()

    def _tell_time(self, sql: str) -> str:
        return sql.replace("lease_clock()", f"CAST({self._now()!r} AS DOUBLE PRECISION)")


@asynccontextmanager
async def open_clocked_postgres(url: str, now: Callable[[], float]) -> AsyncIterator[SqlDatabase]:
    """Open a database whose leases go by a clock of the test."""
    async with open_postgres(url) as database:
        yield ClockedPostgres(database, now)
