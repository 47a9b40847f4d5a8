"""The chat side's database in Postgres: a pool of connections, every statement a transaction, errors as sentences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from agent import Schema, SchemaError, migrate_postgres
from agent.text.storable import make_storable
from bot.errors import InboxError

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection, Error
    from psycopg_pool import AsyncConnectionPool

_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 15.0  # a network that swallows everything is noticed by nothing else
_CONNECTIONS = 8


class PostgresDatabase:
    """Runs statements that SQLite takes as well. Each is atomic; one whose caller is cancelled may have been run."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self._pool = pool

    async def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Change rows and return how many were changed."""
        async with self._run(sql, values) as cursor:
            return int(cursor.rowcount)

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query, or a change that returns rows."""
        async with self._run(sql, values) as cursor:
            return [tuple(row) for row in await cursor.fetchall()]

    async def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Run a query and return its first row."""
        return next(iter(await self.rows(sql, values)), None)

    @asynccontextmanager
    async def _run(self, sql: str, values: Sequence[Any]) -> AsyncIterator[Any]:
        from psycopg import Error

        statement = sql.replace("%", "%%").replace("?", "%s")
        try:
            async with asyncio.timeout(_STATEMENT_SECONDS), self._connect() as connection:
                yield await connection.execute(cast("Any", statement), [_clean(value) for value in values])
        except Error as error:
            raise explain_error(error) from error
        except TimeoutError as error:
            raise InboxError("Postgres does not answer. Check the network to it; citebot goes on trying.") from error

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Take a connection that works; the pool's own check waits ever longer after each that was cut while idle."""
        for _ in range(_CONNECTIONS):
            async with self._pool.connection() as connection:
                if await _is_alive(connection):
                    yield connection
                    return
        async with self._pool.connection() as connection:  # all were cut, and each has been replaced
            yield connection


@asynccontextmanager
async def open_postgres(url: str) -> AsyncIterator[PostgresDatabase]:
    """Connect to a database, bring its tables to the layout of this version, and disconnect at the end.

    Raises `InboxError`.
    """
    from psycopg import AsyncConnection, Error
    from psycopg_pool import AsyncConnectionPool

    # Nothing is prepared, so that a pooler of transactions may stand between.
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "connect_timeout": _CONNECT_SECONDS}
    try:
        async with await AsyncConnection.connect(url, **options) as connection:
            await migrate_postgres(connection, load_postgres_schema())
    except SchemaError as error:
        raise InboxError(str(error)) from error
    except Error as error:
        raise explain_error(error) from error
    async with AsyncConnectionPool(
        url, min_size=1, max_size=_CONNECTIONS, timeout=_CONNECT_SECONDS, kwargs=options, open=False
    ) as pool:
        yield PostgresDatabase(pool)


def load_postgres_schema() -> Schema:
    """Return the layout of the tables."""
    return Schema.load("message", "bot.storage", "postgres")


def explain_error(error: Error) -> InboxError:
    """Explain an error of Postgres in a sentence that says what to do, without the address, which has a password."""
    from psycopg import InterfaceError, OperationalError, ProgrammingError
    from psycopg.errors import DiskFull, ReadOnlySqlTransaction

    # Details may quote what is stored.
    reason = " ".join((error.diag.message_primary or str(error)).split())
    if isinstance(error, ReadOnlySqlTransaction):
        return InboxError("Postgres takes no writes: it is a copy, or set to read-only. Name the one that takes them.")
    if isinstance(error, DiskFull):
        return InboxError("The disk of Postgres is full. Free some space and try again.")
    if isinstance(error, OperationalError | InterfaceError):
        return InboxError(f"Postgres cannot be used ({reason}). See that it runs, and check its address.")
    if isinstance(error, ProgrammingError) and error.sqlstate is None:
        return InboxError(
            "The address of Postgres cannot be read. Write it as postgresql://USER:PASSWORD@HOST:5432/NAME."
        )
    return InboxError(f"Postgres failed: {reason}.")


async def _is_alive(connection: AsyncConnection[Any]) -> bool:
    from psycopg import OperationalError

    try:
        await connection.execute("")
    except OperationalError:
        return False
    return True


def _clean(value: Any) -> Any:
    """Take out of a text what Postgres does not take; SQLite has truth values as numbers."""
    if isinstance(value, bool):
        return int(value)
    return make_storable(value).replace("\0", "") if isinstance(value, str) else value
