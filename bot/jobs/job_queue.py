"""The job queue in Postgres, shared by all processes: requesters write jobs, and workers take them and hear of them."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent import PoolLoad, explain_postgres_error, make_postgres_options
from bot.errors import InboxError
from bot.storage.database import ERRORS
from bot.tasks import run_in_background

if TYPE_CHECKING:
    from procrastinate import PsycopgConnector
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    JobPool = AsyncConnectionPool[AsyncConnection[Any]]

log = logging.getLogger(__name__)
_LOCK = 0x63697465_6A6F62  # "citejob": anyone who lays the tables out holds it
_LOCK_STEP = 0.1  # seconds
_NAME = "queue"  # among the layouts that the database has
# The queue tells its workers of jobs that are new. What waits behind a lock may begin when the one before it has ended,
# and what was interrupted when it waits again.
_WAKE = """
CREATE OR REPLACE TRIGGER citebot_wake AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (old.status = 'doing' AND (new.status = 'todo' OR new.lock IS NOT NULL))
    EXECUTE FUNCTION procrastinate_notify_queue_job_inserted_v1()"""
WATCH_SECONDS = 5.0  # without a word, after which the server is asked whether it is still there
_ANSWER_SECONDS = 5.0
_PAUSES = (0.5, 1.5)  # seconds before another connection is tried


async def prepare_queue(connection: AsyncConnection[Any]) -> None:
    """Create the tables of the queue, or upgrade them to the installed version, in one transaction.

    Processes that start at the same time do it one after the other, even behind a transaction
    pooler. Raises `InboxError` if the tables are foreign or newer, or `psycopg.Error`.
    """
    from procrastinate.schema import SchemaManager

    upgrades = _list_upgrades(SchemaManager.get_migrations_path())
    async with connection.transaction():
        await _take_lock(connection)
        layout = await _read_layout(connection)
        if layout is None:
            await connection.execute(cast("Any", SchemaManager.get_schema()))
            await _note_layout(connection, max(upgrades))
        elif layout > max(upgrades):
            raise InboxError(
                f"The job queue in Postgres was made by a newer citebot (layout {layout}; this one takes up to "
                f"{max(upgrades)}). Use that version, or another database."
            )
        else:
            for number in list_due_upgrades(upgrades, layout):
                await connection.execute(cast("Any", upgrades[number].read_text(encoding="utf-8")))
                await _note_layout(connection, number)
        await connection.execute(_WAKE)


def list_due_upgrades(upgrades: dict[int, Path], layout: int) -> list[int]:
    """List the upgrades that a layout lacks, in order.

    The last ones wait if they remove something that processes of the previous version may still
    use: the next version applies them.
    """
    due = sorted(number for number in upgrades if number > layout)
    while due and "_post_" in upgrades[due[-1]].name:
        due.pop()
    return due


def _list_upgrades(folder: str) -> dict[int, Path]:
    """Find the upgrades by their numbers: `03.04.00_50_post_x.sql` has 3040050."""
    found = {}
    for path in Path(folder).glob("*.sql"):
        version, step, _ = path.name.split("_", 2)
        found[int(version.replace(".", "") + step)] = path
    return found


async def _take_lock(connection: AsyncConnection[Any]) -> None:
    while True:
        cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,))
        row = await cursor.fetchone()
        if row is not None and row[0]:
            return
        await asyncio.sleep(_LOCK_STEP)


async def _read_layout(connection: AsyncConnection[Any]) -> int | None:
    """Return the layout of the queue's tables; None if there are none."""
    cursor = await connection.execute("SELECT layout FROM citebot_layouts WHERE name = %s", (_NAME,))
    noted = await cursor.fetchone()
    if noted is not None:
        return int(noted[0])
    cursor = await connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
    found = await cursor.fetchone()
    if found is not None and found[0]:
        raise InboxError(
            "The database already holds a job queue that citebot did not make. Give citebot a database of its own."
        )
    return None


async def _note_layout(connection: AsyncConnection[Any], layout: int) -> None:
    await connection.execute(
        "INSERT INTO citebot_layouts (name, layout, changed_at) VALUES (%s, %s, clock_timestamp()) "
        "ON CONFLICT (name) DO UPDATE SET layout = excluded.layout, changed_at = excluded.changed_at",
        (_NAME, layout),
    )


_CONNECTIONS = 4


_CONNECT_SECONDS = 5


_TRANSACTION_SECONDS = 15.0


_PAUSE_SECONDS = 1.0


Result = TypeVar("Result")


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
    """Connections to the queue, and requests to it; all methods raise `InboxError`."""

    def __init__(self, pool: JobPool, connector: PsycopgConnector, times: QueueTimes) -> None:
        from procrastinate import App

        self.times = times
        self.connector = connector
        self._pool = pool
        self._app = App(connector=connector)

    async def add(self, request: JobRequest, connection: AsyncConnection[Any] | None = None) -> bool:
        """Write a job, in the transaction of a connection if there is one; False if one with its key is
        already waiting.
        """
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
        """Return the usage of the pool."""
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
        """Do some work in one transaction, again and again while Postgres is down; it may be done more than once."""
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
    """Return a queue key for a name of any length and content."""
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


@asynccontextmanager
async def listen(
    url: str, channel: str, tell: Callable[[], None], *, watch: float = WATCH_SECONDS
) -> AsyncIterator[None]:
    """Call `tell` at every notification of a channel, while the context is open.

    It is also called on every new connection, because some may be missing. A transaction pooler silently drops all of
    them.
    """
    async with run_in_background(_keep_listening(url, channel, tell, watch)):
        yield


async def _keep_listening(url: str, channel: str, tell: Callable[[], None], watch: float) -> None:
    from psycopg import Error

    while True:
        try:
            await _listen_once(url, channel, tell, watch)
        except Error as error:
            log.info("notifications are not heard until Postgres is back: %s", explain_postgres_error(error, ERRORS))
        except TimeoutError:
            log.info("notifications are not heard until Postgres answers again")
        await asyncio.sleep(random.uniform(*_PAUSES))  # noqa: S311 - no secret


async def _listen_once(url: str, channel: str, tell: Callable[[], None], watch: float) -> None:
    """Listen over one connection until that breaks, which it does with an error."""
    from psycopg import AsyncConnection
    from psycopg.sql import SQL, Identifier

    async with await AsyncConnection.connect(url, **make_postgres_options()) as connection:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
        tell()
        while True:
            async for _ in connection.notifies(timeout=watch, stop_after=1):
                tell()
            async with asyncio.timeout(_ANSWER_SECONDS):
                await connection.execute("")  # a network that drops everything is noticed by nothing else
