"""Explains Postgres errors in sentences that say what to do, and tells which ones a retry may get over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent import SchemaError
from bot.errors import InboxError

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection, Error

OLDEST_SERVER = 14  # the first major version in which the tables and statements were tried
NO_ADDRESS = "DATABASE_URL cannot be read. Write it as postgresql://USER:PASSWORD@HOST:5432/NAME."
NO_ANSWER = "Postgres does not answer. Check the network to it; citebot keeps trying."
FULL_DISK = "The disk of Postgres is full. Free some space and try again."
READ_ONLY = "Postgres takes no writes: it is a copy, or set to read-only. Name the one that takes them in DATABASE_URL."
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


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turn what Postgres raises, or its silence, into an `InboxError` with a sentence."""
    from psycopg import Error

    try:
        yield
    except SchemaError as error:
        raise InboxError(str(error)) from error
    except TimeoutError as error:
        raise InboxError(NO_ANSWER) from error
    except Error as error:
        raise explain_error(error) from error


def explain_error(error: Error) -> InboxError:
    """Explain an error of Postgres in a sentence that says what to do, without the address, which has a password."""
    from psycopg import InterfaceError, OperationalError, ProgrammingError
    from psycopg.errors import DiskFull, ReadOnlySqlTransaction

    # Details may quote what is stored.
    reason = " ".join((error.diag.message_primary or str(error)).split())
    if isinstance(error, ReadOnlySqlTransaction):
        return InboxError(READ_ONLY)
    if isinstance(error, DiskFull):
        return InboxError(FULL_DISK)
    if isinstance(error, OperationalError | InterfaceError):
        advice = next((advice for words, advice in _REFUSALS.items() if words.search(reason)), _UNKNOWN)
        return InboxError(f"Postgres cannot be used: {advice.format('DATABASE_URL', reason=reason)}.")
    if isinstance(error, ProgrammingError) and error.sqlstate is None:
        return InboxError(NO_ADDRESS)
    return InboxError(f"Postgres failed: {reason}.")


def is_passing(error: Error) -> bool:
    """Whether a statement may be run again at once: its connection broke, or others were in its way."""
    from psycopg import InterfaceError, OperationalError
    from psycopg.errors import DiskFull, IdleInTransactionSessionTimeout, QueryCanceled
    from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

    lasting = (DiskFull, QueryCanceled, PoolClosed, PoolTimeout, TooManyRequests)
    return isinstance(error, OperationalError | InterfaceError | IdleInTransactionSessionTimeout) and not isinstance(
        error, lasting
    )


def check_server(connection: AsyncConnection[object]) -> None:
    """Raise `InboxError` for a server that is too old."""
    version = connection.info.server_version // 10_000
    if version < OLDEST_SERVER:
        raise InboxError(f"Postgres {version} is too old for citebot. Use version {OLDEST_SERVER} or later.")
