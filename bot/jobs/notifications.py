"""Notifications of Postgres, as hints: what is not notified is found by anyone who looks by themselves now and then."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agent import explain_postgres_error, make_postgres_options
from bot.storage.database import ERRORS
from bot.tasks import run_in_background

WATCH_SECONDS = 5.0  # without a word, after which the server is asked whether it is still there
_ANSWER_SECONDS = 5.0
_PAUSES = (0.5, 1.5)  # seconds before another connection is tried

log = logging.getLogger(__name__)


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
