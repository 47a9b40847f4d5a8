"""Connections to a Postgres database: work that a connection broke under is done again, and errors are sentences."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agent.errors import CheckpointUnreachable
from agent.persistence.postgres.failures import explain_error

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

APPLICATION_NAME = "citebot"  # by which the server tells who is connected
_CONNECTIONS = 4
_CONNECT_SECONDS = 5
_ATTEMPT_SECONDS = 15.0  # a network that swallows everything is noticed by nothing else
_LONGEST_PAUSE = 1.0

Result = TypeVar("Result")
Work = Callable[["AsyncConnection[Any]"], Awaitable[Result]]


class Transactions(Protocol):
    """What runs work in a transaction."""

    async def run_transaction(self, work: Work[Result]) -> Result:
        """Do the work in one transaction; raises `CheckpointError`."""


class OneTransaction:
    """A transaction that is somebody else's to begin and to end; it takes in all work."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def run_transaction(self, work: Work[Result]) -> Result:
        """Do the work once; raises `CheckpointError`, after which the transaction is good for nothing."""
        from psycopg import Error

        try:
            return await work(self._connection)
        except Error as error:
            raise explain_error(error) from error


class PostgresPool:
    """A few connections to one database; `patience` is for how many seconds one that does not answer is asked again."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]], *, patience: float) -> None:
        self._pool = pool
        self._patience = patience

    async def run_transaction(self, work: Work[Result]) -> Result:
        """Do the work in one transaction, which may begin anew: where a connection breaks, nobody knows what was done.

        Raises `CheckpointError`.
        """
        from psycopg import Error

        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + self._patience, 0.02
        while True:
            try:
                return await self._try_once(work)
            except (Error, TimeoutError) as error:
                explained = explain_error(error)
                if not isinstance(explained, CheckpointUnreachable) or loop.time() + pause > give_up:
                    raise explained from error
            # Connections that were cut while idle fail at once, one after the other.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _try_once(self, work: Work[Result]) -> Result:
        async with (
            asyncio.timeout(_ATTEMPT_SECONDS),
            self._pool.connection() as connection,
            connection.pipeline(),
            connection.transaction(),
        ):
            return await work(connection)


@asynccontextmanager
async def open_pool(url: str, *, patience: float) -> AsyncIterator[PostgresPool]:
    """Keep connections to a database open; nothing is connected before it is needed."""
    from psycopg_pool import AsyncConnectionPool

    async with AsyncConnectionPool(
        url, min_size=0, max_size=_CONNECTIONS, timeout=_CONNECT_SECONDS, kwargs=make_postgres_options(), open=False
    ) as pool:
        yield PostgresPool(pool, patience=patience)


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Open one connection for what is done at the start; raises `CheckpointError`, for errors of the work as well."""
    from psycopg import AsyncConnection, Error

    try:
        async with await AsyncConnection.connect(url, **make_postgres_options()) as connection:
            yield connection
    except (Error, TimeoutError) as error:
        raise explain_error(error) from error


def make_postgres_options() -> dict[str, Any]:
    """Return how to connect: nothing is prepared, so that a pooler of transactions may stand between."""
    return {
        "autocommit": True,
        "prepare_threshold": None,
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": APPLICATION_NAME,
    }
