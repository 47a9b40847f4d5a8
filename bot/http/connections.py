"""Limits the connections of a server in number and duration."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Literal

import h11
from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from bot.clock import RareWarnings

MAX_CONNECTIONS = 128
MAX_LONG = 64  # of them whose requests take longer, because somebody known waits for an answer
MAX_EACH = 8  # of those, of one person
SECONDS = 20.0  # for a request with its answer; a well-meant one takes a small part of it
LONG_SECONDS = 4_000.0  # of one that takes longer; an answer may take an hour, and wait for others before
RETRY_AFTER = "10"  # seconds
_READ_BYTES = 4_096  # at a time: h11 takes a head of any length that is read at once, and parses in the event loop
_LAST_ROUNDS = 2  # of the loop, within which what was aborted is gone

Reason = Literal["crowded", "slow"]

log = logging.getLogger(__name__)


class Connections:
    """The open connections, oldest first; if there are too many, the oldest is closed for the newest.

    So nobody can keep others out by holding connections: they would have to open the maximum within
    the time of one request. An authenticated client's connection may stay open for longer; it is
    exempt from closing, and there are at most `most_long` of them.
    """

    def __init__(
        self,
        *,
        most: int = MAX_CONNECTIONS,
        most_long: int = MAX_LONG,
        seconds: float = SECONDS,
        count_closed: Callable[[Reason], None] | None = None,
    ) -> None:
        self.closed: Counter[Reason] = Counter()
        self._count_closed = count_closed
        self._most = most
        self._most_long = most_long
        self._seconds = seconds
        self._open: dict[Connection, asyncio.TimerHandle] = {}
        self._long: dict[Connection, asyncio.TimerHandle] = {}
        self._is_closed = False
        self._warnings = RareWarnings(log)

    def __len__(self) -> int:
        return len(self._open) + len(self._long)

    async def close(self) -> None:
        """Close the open connections, and every later one."""
        self._is_closed = True
        for _ in range(_LAST_ROUNDS):
            for connection in [*self._open, *self._long]:
                connection.transport.abort()
            await asyncio.sleep(0)

    def admit(self, connection: Connection) -> None:
        """Admit a connection."""
        while len(self._open) >= self._most:
            self._close(next(iter(self._open)), "crowded")
        timer = asyncio.get_running_loop().call_later(self._seconds, self._close, connection, "slow")
        self._open[connection] = timer
        if self._is_closed:
            connection.transport.abort()

    def keep_open(self, connection: Connection, seconds: float) -> bool:
        """Keep a connection open for that long from now, as for a streamed answer.

        False if too many are kept open already, or it is gone. Only for authenticated clients.
        """
        if connection not in self._open or len(self._long) >= self._most_long:
            return False
        self.forget(connection)
        self._long[connection] = asyncio.get_running_loop().call_later(seconds, self._close, connection, "slow")
        return True

    def count_kept(self, holder: str) -> int:
        """Count the connections kept open for somebody."""
        return sum(each.holder == holder for each in self._long)

    def release(self, connection: Connection) -> None:
        """Let a connection be closed for others again after its answer."""
        if connection in self._long:
            self.forget(connection)
            self.admit(connection)

    def forget(self, connection: Connection) -> None:
        """Note that a connection is gone."""
        timer = self._open.pop(connection, None) or self._long.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _close(self, connection: Connection, reason: Reason) -> None:
        self.forget(connection)
        self.closed[reason] += 1
        if self._count_closed is not None:
            self._count_closed(reason)
        connection.transport.abort()
        self._warnings.warn("a connection was closed: %s; so far %s", reason, dict(self.closed))


class Connection(H11Protocol):
    """One connection within the common limits; requests find it as `connection` in their state."""

    def __init__(self, connections: Connections, config: Config, server_state: ServerState) -> None:
        super().__init__(config, server_state, {"connection": self})
        self.holder = ""
        self.bounds = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Count the new connection."""
        super().connection_made(transport)
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined] # asyncio offers no other way
        self.bounds.admit(self)

    def data_received(self, data: bytes) -> None:
        """Read the only request; uvicorn would stop at further data, and not notice when its sender leaves."""
        if self.cycle is None or self.cycle.more_body:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection, and its reference in the requests' state."""
        self.bounds.forget(self)
        super().connection_lost(exc)
        self.app_state = {}

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP, without repeating any of it."""
        log.info("a request could not be read")
        if self.cycle is not None:  # a request that has begun has no reader left
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.abort()


def keep_open(request: Request, holder: str, *, seconds: float = LONG_SECONDS, most: int = MAX_EACH) -> None:
    """Let an authenticated request take its time, to the end of its connection.

    Raises an `HTTPException` of status 429 if the person has too many, 503 if everybody together
    has.
    """
    connection: Connection = request.state.connection
    if connection.bounds.count_kept(holder) >= most:
        detail = f"You already have {most} requests waiting. Wait until one finishes."
        raise HTTPException(429, detail, {"Retry-After": RETRY_AFTER})
    if not connection.bounds.keep_open(connection, seconds):
        detail = "Too many requests are waiting. Try again in a moment."
        raise HTTPException(503, detail, {"Retry-After": RETRY_AFTER})
    connection.holder = holder
