"""The job queue in Postgres, as all processes share it: who asks writes a job, and who works takes one."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent import PoolLoad, explain_postgres_error, make_postgres_options
from bot.errors import InboxError
from bot.jobs.queue_schema import prepare_queue
from bot.storage.database import ERRORS

if TYPE_CHECKING:  # comes with the extra `cluster`
    from procrastinate import PsycopgConnector
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    JobPool = AsyncConnectionPool[AsyncConnection[Any]]

_CONNECTIONS = 4
_CONNECT_SECONDS = 5
_TRANSACTION_SECONDS = 15.0
_PAUSE_SECONDS = 1.0

Result = TypeVar("Result")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueTimes:
    """The intervals of a worker, in seconds.

    A worker without a `heartbeat` for `stalled` counts as dead, which is checked every `sweep`. Every `poll` it looks
    for jobs without a notification, as behind a transaction pooler. `shutdown` bounds its end.
    """

    heartbeat: float = 3.0
    stalled: float = 15.0
    sweep: float = 2.0
    poll: float = 1.0
    shutdown: float = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRequest:
    """A job to store: jobs with one `lock` run one at a time, and only one with a `key` waits."""

    queue: str
    args: Mapping[str, int | str | bool]
    lock: str | None
    key: str
    priority: int = 0


class JobQueue:
    """Connections to the queue, and what is asked of it; all methods raise `InboxError`."""

    def __init__(self, pool: JobPool, connector: PsycopgConnector, times: QueueTimes) -> None:
        from procrastinate import App

        self.times = times
        self.connector = connector
        self._pool = pool
        self._app = App(connector=connector)

    async def add(self, request: JobRequest, connection: AsyncConnection[Any] | None = None) -> bool:
        """Write a job, in the transaction of a connection if there is one; False if one of its key waits already."""
        from procrastinate.exceptions import AlreadyEnqueued

        async def write(connection: AsyncConnection[Any]) -> bool:
            deferrer = self._app.configure_task(
                request.queue,
                queue=request.queue,
                lock=request.lock,
                queueing_lock=request.key,
                priority=request.priority,
                connection=connection,
            )
            try:
                async with connection.transaction():  # which alone is undone where the job waits already
                    await deferrer.defer_async(**request.args)
            except AlreadyEnqueued:
                return False
            return True

        return await (write(connection) if connection is not None else self.run(write))

    def measure_pool(self) -> PoolLoad:
        """Tell how much of the pool is in use."""
        return PoolLoad.of(self._pool)

    async def run(self, work: Callable[[AsyncConnection[Any]], Awaitable[Result]]) -> Result:
        """Do some work in one transaction."""
        from procrastinate.exceptions import ConnectorException
        from psycopg import Error

        try:
            async with asyncio.timeout(_TRANSACTION_SECONDS), self._pool.connection() as connection:
                return await work(connection)
        except (Error, ConnectorException, TimeoutError) as error:
            raise explain_queue_error(error) from error

    async def run_until_done(self, work: Callable[[AsyncConnection[Any]], Awaitable[Result]]) -> Result:
        """Do some work in one transaction, again and again while Postgres is away: it may be done more than once."""
        while True:
            try:
                return await self.run(work)
            except InboxError as error:
                log.warning("the job queue cannot be written and is tried again: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Sequence[tuple[Any, ...]]:
        """Run a query, or a change that returns rows."""

        async def ask(connection: AsyncConnection[Any]) -> Sequence[tuple[Any, ...]]:
            cursor = await connection.execute(cast("Any", sql), values)
            return [tuple(row) for row in await cursor.fetchall()]

        return await self.run(ask)


@asynccontextmanager
async def open_job_queue(url: str, *, times: QueueTimes | None = None) -> AsyncIterator[JobQueue]:
    """Connect to the queue in a database that `open_postgres` has prepared, and disconnect at the end.

    Raises `InboxError`.
    """
    from procrastinate import PsycopgConnector
    from psycopg import AsyncConnection, Error
    from psycopg_pool import AsyncConnectionPool

    options = make_postgres_options()
    del options["autocommit"]  # which procrastinate sets itself
    try:
        async with await AsyncConnection.connect(url, **options) as connection:
            await prepare_queue(connection)
    except Error as error:
        raise explain_postgres_error(error, ERRORS) from error
    async with AsyncConnectionPool(
        url,
        min_size=1,
        max_size=_CONNECTIONS,
        timeout=_CONNECT_SECONDS,
        check=AsyncConnectionPool.check_connection,
        kwargs=options,
        open=False,
    ) as pool:
        connector = PsycopgConnector()
        await connector.open_async(pool)
        yield JobQueue(pool, connector, times or QueueTimes())


def make_lock(kind: str, name: str) -> str:
    """Return a key of the queue for a name, however long that is and whatever is in it."""
    return f"{kind} {hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def explain_queue_error(error: BaseException) -> Exception:
    """Explain an error of the queue in a sentence; procrastinate keeps the error of Postgres as its cause."""
    from psycopg import Error

    if isinstance(error, InboxError):
        return error
    reason = error if isinstance(error, Error) else error.__cause__
    if isinstance(reason, Error | TimeoutError):
        return explain_postgres_error(reason, ERRORS)
    return InboxError(f"The job queue failed: {type(error).__name__}: {error}")
