"""The chat side's database in Postgres: a pool of connections, every statement a transaction, errors as sentences."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from agent import Schema, heed_cancels, make_postgres_options, migrate_postgres
from agent.text.storable import make_storable_in_postgres
from bot.errors import InboxError
from bot.storage.database import Values
from bot.storage.postgres_errors import NO_ADDRESS, check_server, explain_failures, is_passing
from indexer import describe_extra

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection, AsyncCursor
    from psycopg_pool import AsyncConnectionPool

T = TypeVar("T")

_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 15.0  # a network that swallows everything is noticed by nothing else
_CONNECTIONS = 8
_PLACEHOLDER = re.compile(r"\?|(?<![:\w]):([a-z]\w*)")
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolLoad:
    """How many connections a pool has, how many of them are in use, and how many callers wait for one."""

    size: int
    in_use: int
    waiting: int

    @classmethod
    def of(cls, pool: AsyncConnectionPool[Any]) -> Self:
        """Read it off a pool."""
        stats = pool.get_stats()
        size = stats.get("pool_size", 0)
        return cls(size=size, in_use=size - stats.get("pool_available", 0), waiting=stats.get("requests_waiting", 0))


class PostgresTransaction:
    """Several statements that are made together or not at all, over one connection; `lock` is for single ones."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self.connection = connection

    async def write(self, sql: str, values: Values = ()) -> int:
        """Change rows and return how many were changed."""
        return int((await self._execute(sql, values)).rowcount)

    async def rows(self, sql: str, values: Values = (), *, lock: str = "") -> list[tuple[Any, ...]]:
        """Run a query, or a change that returns rows; others that name the same lock wait for the transaction."""
        if lock:
            await self.connection.execute(_LOCK, [_clean(lock)])
        return [tuple(row) for row in await (await self._execute(sql, values)).fetchall()]

    async def row(self, sql: str, values: Values = (), *, lock: str = "") -> tuple[Any, ...] | None:
        """Run a query and return its first row."""
        return next(iter(await self.rows(sql, values, lock=lock)), None)

    async def _execute(self, sql: str, values: Values) -> AsyncCursor[Any]:
        return await self.connection.execute(cast("Any", _translate(sql)), _clean_values(values))


class PostgresDatabase:
    """Runs statements that SQLite takes as well. Each is atomic; one whose caller is cancelled may have been run.

    Where a connection breaks, whether its statement was carried out is not known: it is run once more. All statements
    leave the same rows when they are run twice, but for a count of questions, which then is one too high, and the last
    authors of a thread, of whom one is then there twice.
    """

    is_remote = True

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self._pool = pool

    async def write(self, sql: str, values: Values = ()) -> int:
        """Change rows and return how many were changed."""
        return await self._run(lambda transaction: transaction.write(sql, values))

    async def rows(self, sql: str, values: Values = (), *, lock: str = "") -> list[tuple[Any, ...]]:
        """Run a query, or a change that returns rows; of those that name the same lock, one after the other."""
        return await self._run(lambda transaction: transaction.rows(sql, values, lock=lock), in_block=bool(lock))

    async def row(self, sql: str, values: Values = (), *, lock: str = "") -> tuple[Any, ...] | None:
        """Run a query and return its first row."""
        return next(iter(await self.rows(sql, values, lock=lock)), None)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        """Make all statements of the context together: kept at its end, undone where it fails. Nothing is run twice."""
        with explain_failures(), heed_cancels():
            async with self._connect() as connection, connection.transaction():
                yield PostgresTransaction(connection)

    def measure_pool(self) -> PoolLoad:
        """Tell how much of the pool is in use."""
        return PoolLoad.of(self._pool)

    async def check(self) -> None:
        """Do nothing: what is gone cannot be written to without an error."""

    async def shrink(self) -> None:
        """Do nothing: Postgres frees space by itself."""

    async def _run(self, statement: Callable[[PostgresTransaction], Awaitable[T]], *, in_block: bool = False) -> T:
        """Run a statement; where its connection breaks meanwhile, once more over another one."""
        from psycopg import Error

        with explain_failures():
            try:
                return await self._run_once(statement, in_block=in_block)
            except Error as error:
                if not is_passing(error):
                    raise
            return await self._run_once(statement, in_block=in_block)

    async def _run_once(self, statement: Callable[[PostgresTransaction], Awaitable[T]], *, in_block: bool) -> T:
        with heed_cancels():
            async with self._connect() as connection:
                transaction = PostgresTransaction(connection)
                if not in_block:
                    return await statement(transaction)
                async with connection.transaction():
                    return await statement(transaction)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Take a connection that works, for a statement or a few.

        The pool's own check waits ever longer after each connection that was cut while idle.
        """
        async with asyncio.timeout(_STATEMENT_SECONDS):
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
    try:
        from psycopg import AsyncConnection
        from psycopg_pool import AsyncConnectionPool
    except ImportError as error:
        raise InboxError(
            f"DATABASE_URL needs the extra `cluster`, which is not installed. {describe_extra('cluster')}"
        ) from error

    if not url.startswith(("postgresql://", "postgres://")):
        raise InboxError(NO_ADDRESS)
    options = make_postgres_options()
    with explain_failures():
        async with await AsyncConnection.connect(url, **options) as connection:
            check_server(connection)
            await migrate_postgres(connection, load_postgres_schema())
    async with AsyncConnectionPool(
        url, min_size=1, max_size=_CONNECTIONS, timeout=_CONNECT_SECONDS, kwargs=options, open=False
    ) as pool:
        yield PostgresDatabase(pool)


@asynccontextmanager
async def open_transaction(url: str) -> AsyncIterator[PostgresTransaction]:
    """Connect to a database as `open_postgres` does, for one transaction that may take as long as it likes."""
    async with open_postgres(url):
        pass  # it has brought the tables to the layout of this version
    from psycopg import AsyncConnection

    options = make_postgres_options()
    with explain_failures():
        async with await AsyncConnection.connect(url, **options) as connection, connection.transaction():
            yield PostgresTransaction(connection)


def load_postgres_schema() -> Schema:
    """Return the layout of the tables."""
    return Schema.load("message", "bot.storage", "postgres")


async def _is_alive(connection: AsyncConnection[Any]) -> bool:
    from psycopg import OperationalError

    try:
        await connection.execute("")
    except OperationalError:
        return False
    return True


def _translate(sql: str) -> str:
    """Write the values of a statement, `?` or `:name`, as the client does."""
    return _PLACEHOLDER.sub(lambda found: f"%({found[1]})s" if found[1] else "%s", sql.replace("%", "%%"))


def _clean_values(values: Values) -> Any:
    if isinstance(values, Mapping):
        return {name: _clean(value) for name, value in values.items()}
    return [_clean(value) for value in values]


def _clean(value: Any) -> Any:
    """Take out of a text what Postgres does not take; SQLite has truth values as numbers."""
    if isinstance(value, bool):
        return int(value)
    return make_storable_in_postgres(value)
