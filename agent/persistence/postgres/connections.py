"""Connections to a Postgres database: work that a connection broke under is done again, and errors are sentences."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

from agent.errors import CheckpointError, CheckpointUnreachable, CheckpointUnwritable, CheckpointVersion
from agent.text.storable import make_storable_in_postgres

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool


APPLICATION_NAME = "citebot"  # by which the server tells who is connected
_CONNECTIONS = 4
_CONNECT_SECONDS = 5
_ATTEMPT_SECONDS = 15.0  # a network that swallows everything is noticed by nothing else
_LONGEST_PAUSE = 1.0

Result = TypeVar("Result")
Work = Callable[["AsyncConnection[Any]"], Awaitable[Result]]
Connections = Union["AsyncConnection[Any]", "AsyncConnectionPool[AsyncConnection[Any]]"]
_NO_ADDRESS = "DATABASE_URL cannot be read. Write it as postgresql://USER:PASSWORD@HOST:5432/NAME."
_NO_HOST = "The host in DATABASE_URL is not known. Check how it is written; in a password, write @ as %40 and / as %2F."
_NO_ANSWER = "Postgres does not answer. Check the network to it, and ask again."
_CLOSED = "The connections to Postgres are closed: citebot is shutting down."
# What refuses a connection has no code.
_NOT_FOUND = re.compile(r"resolve host|name or service not known", re.IGNORECASE)
_REFUSED = re.compile(r"authentication failed|no password supplied|does not exist", re.IGNORECASE)


@contextmanager
def heed_cancels() -> Iterator[None]:
    """Raise, at the end of the context, the cancellation of a task that a library has swallowed within.

    psycopg waits by `asyncio.wait_for`, which before Python 3.12 forgets a cancellation that comes together with what
    it waits for: whoever has stopped an answer then would wait for its end for ever.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        yield
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


class Transactions(Protocol):
    """What runs work in a transaction, and the connections that LangGraph's checkpointer uses."""

    @property
    def connections(self) -> Connections:
        """The connections."""

    async def run_transaction(self, work: Work[Result]) -> Result:
        """Do the work in one transaction; raises `CheckpointError`."""


class OneTransaction:
    """A transaction that is somebody else's to begin and to end; it takes in all work."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        _clean_json(connection)
        self.connections: Connections = connection
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
        self.connections = pool
        self._patience = patience

    async def run_transaction(self, work: Work[Result]) -> Result:
        """Do the work in one transaction, which may start over: where a connection breaks, nobody knows what was done.

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
            self.connections.connection() as connection,
            connection.pipeline(),
            connection.transaction(),
        ):
            return await work(connection)


@asynccontextmanager
async def open_pool(url: str, *, patience: float) -> AsyncIterator[PostgresPool]:
    """Keep connections to a database open; nothing is connected before it is needed."""
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
        """Connections for LangGraph's checkpointer as well, which neither asks twice nor heeds a cancellation."""

        @asynccontextmanager
        async def connection(self, timeout: float | None = None) -> AsyncIterator[AsyncConnection[Any]]:  # noqa: ASYNC109 - overrides
            with heed_cancels():
                async with super().connection(timeout) as connection:
                    yield connection

    async def configure(connection: AsyncConnection[Any]) -> None:
        _clean_json(connection)

    async with Pool(
        url,
        min_size=0,
        max_size=_CONNECTIONS,
        timeout=patience,
        kwargs=make_postgres_options(),
        configure=configure,
        check=AsyncConnectionPool.check_connection,
        open=False,
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


def _clean_json(connection: AsyncConnection[Any]) -> None:
    """Let a connection leave out of JSON what Postgres does not take: LangGraph puts texts of a state into it as is."""
    from psycopg.types.json import set_json_dumps

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {make_storable_in_postgres(key): clean(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [clean(each) for each in value]
        return make_storable_in_postgres(value)

    set_json_dumps(lambda value: json.dumps(clean(value)), connection)


def make_postgres_options() -> dict[str, Any]:
    """Return how to connect: nothing is prepared, so that a pooler of transactions may stand between."""
    return {
        "autocommit": True,
        "prepare_threshold": None,
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": APPLICATION_NAME,
        # A network that drops everything is noticed by the connection itself, also while it only listens.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
    }


def explain_error(error: Exception) -> CheckpointError:
    """Return the error to raise instead; `CheckpointUnreachable` where another try may help."""
    from psycopg import Error, InterfaceError, OperationalError, errors
    from psycopg_pool import PoolClosed

    if not isinstance(error, Error):
        return CheckpointUnreachable(_NO_ANSWER)
    # Details may quote what is stored.
    reason = " ".join((error.diag.message_primary or str(error)).split())
    if isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege):
        return CheckpointUnwritable(f"Postgres takes no writes: {reason}. Make room, or name one that does.")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return CheckpointVersion(f"Postgres holds no conversations of this citebot ({reason}). Use another database.")
    if isinstance(error, OperationalError | InterfaceError) and not isinstance(error, PoolClosed):
        return _explain_silence(reason, has_code=error.sqlstate is not None)
    if error.sqlstate is None:  # what the client finds wrong before it asks may quote the address
        return CheckpointError(_CLOSED if isinstance(error, PoolClosed) else _NO_ADDRESS)
    return CheckpointError(f"Postgres failed: {reason}.")


def _explain_silence(reason: str, *, has_code: bool) -> CheckpointError:
    if not has_code and _NOT_FOUND.search(reason):  # which quotes what may be a part of the password
        return CheckpointUnwritable(_NO_HOST)
    family = CheckpointUnwritable if not has_code and _REFUSED.search(reason) else CheckpointUnreachable
    return family(f"Postgres cannot be used ({reason}). See that it runs, and check DATABASE_URL.")
