"""A Postgres database: a connection pool, retries, and errors as sentences without the address."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from agent.errors import SchemaError
from agent.persistence.database import Database, DatabaseErrors, Outcome, Statement, Values
from agent.persistence.migrations import Schema, migrate_postgres
from agent.text.storable import make_storable_in_postgres
from indexer.installation import describe_extra

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

APPLICATION_NAME = "citebot"  # by which the server tells who is connected
OLDEST_SERVER = 14  # the first major version in which the tables and statements were tried
_CONNECT_SECONDS = 5
_ATTEMPT_SECONDS = 15.0  # a network that swallows everything is noticed by nothing else
_MAX_PAUSE = 1.0
_PLACEHOLDER = re.compile(r"\?|(?<![:\w]):([a-z]\w*)")
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"

_NO_ADDRESS = "DATABASE_URL cannot be read. Write it as postgresql://USER:PASSWORD@HOST:5432/NAME."
_NO_ANSWER = "Postgres does not answer. Check the network to it; citebot keeps trying."
_BY_CODE = {
    "25006": "Postgres takes no writes: it is a copy, or set to read-only. Name another one in DATABASE_URL.",
    "42501": "Postgres takes no writes: {reason}. Grant them to the user in DATABASE_URL.",
    "42703": "Postgres holds no tables of this citebot ({reason}). Use another database.",
    "42P01": "Postgres holds no tables of this citebot ({reason}). Use another database.",
    "53100": "The disk of Postgres is full. Free some space and try again.",
}
# What a server says that refuses a connection has no code, and is shown as it is in another language than English.
_REFUSALS = {
    re.compile(r"password authentication failed|no password supplied"): "the user or the password in {} is wrong",
    re.compile(r"database \S+ does not exist"): "there is no database of the name in {}; make it with createdb",
    re.compile(r"role \S+ does not exist"): "there is no user of the name in {}; make it with createuser",
    re.compile(r"too many (?:clients|connections)"): "it has no connection left; raise max_connections",
    re.compile(r"remaining connection slots"): "it has no connection left; raise max_connections",
    re.compile(
        r"resolve host|[Nn]ame or service not known"
    ): "the host in {} is not known; in a password, @ is %40 and / is %2F",
    re.compile(r"invalid (?:integer value|port)"): "the port in {} is no number; in a password, @ is %40 and / is %2F",
    re.compile(r"[Cc]onnection refused"): "nothing listens at the host and port in {}; see that Postgres runs there",
}
_UNKNOWN = "{reason}. See that it runs, and check its address in {}"

T = TypeVar("T")


@contextmanager
def heed_cancels() -> Iterator[None]:
    """Raise, at the end of the context, a cancellation that a library swallowed within it.

    psycopg waits by `asyncio.wait_for`, which before Python 3.12 loses a cancellation that arrives together with the
    awaited result: a stopped answer would then run to its end.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        yield
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolLoad:
    """A pool's connections, those in use, and the callers waiting for one."""

    size: int
    in_use: int
    waiting: int

    @classmethod
    def of(cls, pool: AsyncConnectionPool[Any]) -> Self:
        """Measure a pool."""
        stats = pool.get_stats()
        size = stats.get("pool_size", 0)
        return cls(size=size, in_use=size - stats.get("pool_available", 0), waiting=stats.get("requests_waiting", 0))


class Postgres(Database):
    """Runs statements on a server over some connection."""

    is_remote = True
    clock = "extract(epoch FROM clock_timestamp())"

    async def check(self) -> None:
        """Do nothing: writing to a missing database fails by itself."""

    async def shrink(self) -> None:
        """Do nothing: Postgres frees space on its own."""


class PostgresTransaction(Postgres):
    """A transaction over the caller's connection, which includes all statements."""

    def __init__(self, connection: AsyncConnection[Any], errors: DatabaseErrors) -> None:
        self.connection = connection
        self._errors = errors

    async def run_all(
        self, statements: Sequence[Statement], *, lock: str = "", only_if: Statement | None = None
    ) -> Outcome | None:
        """Run statements; after an error the transaction cannot be used."""
        with explain_failures(self._errors):
            return await _run_statements(self.connection, statements, lock, only_if)


class PostgresDatabase(Postgres):
    """A few connections to one database; a call whose caller is cancelled may still take effect.

    If a connection breaks, it is unknown whether its statements took effect: they are run again, at once and then for
    `patience` seconds. Running them twice leaves the same rows, except a count of questions, which is then one too
    high, and the last authors of a thread, one of whom is then listed twice.
    """

    def __init__(
        self, pool: AsyncConnectionPool[AsyncConnection[Any]], errors: DatabaseErrors, patience: float
    ) -> None:
        self.pool = pool
        self._errors = errors
        self._patience = patience

    async def run_all(
        self, statements: Sequence[Statement], *, lock: str = "", only_if: Statement | None = None
    ) -> Outcome | None:
        """Run statements in one transaction, a single one directly."""

        async def run(connection: AsyncConnection[Any]) -> Outcome | None:
            if len(statements) == 1 and not lock and only_if is None:
                return await _run_statement(connection, statements[0])
            async with connection.transaction():
                return await _run_statements(connection, statements, lock, only_if)

        with explain_failures(self._errors):
            return await self._persist(run)

    async def _persist(self, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        from psycopg import Error

        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + self._patience, 0.0
        while True:
            try:
                async with asyncio.timeout(_ATTEMPT_SECONDS), self.pool.connection() as connection:
                    return await work(connection)
            except (Error, TimeoutError) as error:
                is_first = not pause and isinstance(error, Error)
                if not is_passing(error) or (loop.time() + pause > give_up and not is_first):
                    raise
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            pause = min(2 * pause, _MAX_PAUSE) or 0.02


@asynccontextmanager
async def open_postgres_database(
    url: str, schema: Schema, errors: DatabaseErrors, *, connections: int, patience: float
) -> AsyncIterator[PostgresDatabase]:
    """Connect to a database, migrate its tables to a schema, and disconnect at the end."""
    async with connect_postgres(url, errors) as connection:
        await migrate_postgres(connection, schema)
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    class Pool(AsyncConnectionPool[AsyncConnection[Any]]):
        """Connections for LangGraph's checkpointer as well, which neither asks twice nor heeds a cancellation."""

        @asynccontextmanager
        async def connection(self, timeout: float | None = None) -> AsyncIterator[AsyncConnection[Any]]:  # noqa: ASYNC109 - overrides
            # The pool's own check waits ever longer after each connection that was cut while idle.
            for _ in range(connections):
                with heed_cancels():
                    async with super().connection(timeout) as connection:
                        if await _is_alive(connection):
                            yield connection
                            return
            with heed_cancels():
                async with super().connection(timeout) as connection:  # all were cut, and each has been replaced
                    yield connection

    async with Pool(
        url,
        min_size=1,
        max_size=connections,
        timeout=max(patience, _CONNECT_SECONDS),
        kwargs=make_postgres_options(),
        configure=_clean_json,
        open=False,
    ) as pool:
        yield PostgresDatabase(pool, errors, patience)


@asynccontextmanager
async def connect_postgres(url: str, errors: DatabaseErrors) -> AsyncIterator[AsyncConnection[Any]]:
    """Open one connection without prepared statements; raises the errors of `errors`, for failures inside as well."""
    try:
        import psycopg_pool  # noqa: F401 - installed together
        from psycopg import AsyncConnection
    except ImportError as error:
        raise errors.failed(
            f"DATABASE_URL needs the extra `cluster`, which is not installed. {describe_extra('cluster')}"
        ) from error
    if not url.startswith(("postgresql://", "postgres://")):
        raise errors.failed(_NO_ADDRESS)
    with explain_failures(errors):
        async with await AsyncConnection.connect(url, **make_postgres_options()) as connection:
            if (version := connection.info.server_version // 10_000) < OLDEST_SERVER:
                raise errors.failed(f"Postgres {version} is too old for citebot. Use version {OLDEST_SERVER} or later.")
            await _clean_json(connection)
            yield connection


def make_postgres_options() -> dict[str, Any]:
    """Return connection options without prepared statements, which transaction poolers do not support."""
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


@contextmanager
def explain_failures(errors: DatabaseErrors) -> Iterator[None]:
    """Turn Postgres's errors, or its silence, into an error with a sentence."""
    from psycopg import Error

    try:
        yield
    except SchemaError as error:
        raise errors.failed(str(error)) from error
    except (Error, TimeoutError) as error:
        raise explain_postgres_error(error, errors) from error


def explain_postgres_error(error: Exception, errors: DatabaseErrors) -> Exception:
    """Return the error to raise instead, which says what to do without the address and its password."""
    from psycopg import Error, InterfaceError, OperationalError, ProgrammingError
    from psycopg_pool import PoolClosed

    if not isinstance(error, Error):
        return errors.unreachable(_NO_ANSWER)
    # Details may quote what is stored.
    reason = " ".join((error.diag.message_primary or str(error)).split())
    if (sentence := _BY_CODE.get(error.sqlstate or "")) is not None:
        return errors.failed(sentence.format(reason=reason))
    if isinstance(error, OperationalError | InterfaceError):
        advice = next((advice for words, advice in _REFUSALS.items() if words.search(reason)), _UNKNOWN)
        family = errors.failed if isinstance(error, PoolClosed) else errors.unreachable
        return family(f"Postgres cannot be used: {advice.format('DATABASE_URL', reason=reason)}.")
    if isinstance(error, ProgrammingError) and error.sqlstate is None:  # which may quote the address
        return errors.failed(_NO_ADDRESS)
    return errors.failed(f"Postgres failed: {reason}.")


def is_passing(error: Exception) -> bool:
    """Whether statements may be run again: their connection broke, nobody answered, or others blocked them."""
    from psycopg import InterfaceError, OperationalError
    from psycopg.errors import DiskFull, IdleInTransactionSessionTimeout, QueryCanceled
    from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

    if isinstance(error, DiskFull | QueryCanceled | PoolClosed | PoolTimeout | TooManyRequests):
        return False
    return isinstance(error, OperationalError | InterfaceError | IdleInTransactionSessionTimeout | TimeoutError)


async def _run_statements(
    connection: AsyncConnection[Any], statements: Sequence[Statement], lock: str, only_if: Statement | None
) -> Outcome | None:
    if lock:
        await connection.execute(_LOCK, [_clean(lock)])
    if only_if is not None and not (await _run_statement(connection, only_if)).rows:
        return None
    outcome = Outcome([], 0)
    for statement in statements:
        outcome = await _run_statement(connection, statement)
    return outcome


async def _run_statement(connection: AsyncConnection[Any], statement: Statement) -> Outcome:
    sql, values = statement
    cursor = await connection.execute(cast("Any", _translate(sql)), _clean_values(values))
    return Outcome(await cursor.fetchall() if cursor.description else [], cursor.rowcount)


async def _is_alive(connection: AsyncConnection[Any]) -> bool:
    from psycopg import OperationalError

    try:
        await connection.execute("")
    except OperationalError:
        return False
    return True


async def _clean_json(connection: AsyncConnection[Any]) -> None:
    """Make a connection drop JSON that Postgres refuses, because LangGraph writes state texts unchanged."""
    from psycopg.types.json import set_json_dumps

    set_json_dumps(_dump_json, connection)


def _dump_json(value: Any) -> str:
    return json.dumps(_clean_nested(value))


def _clean_nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {make_storable_in_postgres(key): _clean_nested(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_nested(each) for each in value]
    return make_storable_in_postgres(value)


def _translate(sql: str) -> str:
    """Convert a statement's placeholders, `?` or `:name`, to the client's."""
    return _PLACEHOLDER.sub(lambda found: f"%({found[1]})s" if found[1] else "%s", sql.replace("%", "%%"))


def _clean_values(values: Values) -> Any:
    if isinstance(values, Mapping):
        return {name: _clean(value) for name, value in values.items()}
    return [_clean(value) for value in values]


def _clean(value: Any) -> Any:
    """Drop characters that Postgres refuses; SQLite stores truth values as numbers."""
    if isinstance(value, bool):
        return int(value)
    return make_storable_in_postgres(value)
