"""Bounds the connections of a server: only so many at a time, and each for only so long."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Literal, cast

from bot.webhooks.throttled_warnings import RareWarnings

MOST = 128
_LAST_ROUNDS = 2  # of the loop, within which what was aborted is gone
SECONDS = 20.0  # for a request with its answer; a well-meant one takes a small part of it

Reason = Literal["crowded", "slow"]

log = logging.getLogger(__name__)


class Connections:
    """The open connections, the oldest first; if there are too many, the oldest makes room for the newest.

    So nobody can keep others out by holding connections: they would have to open the maximum within the time that one
    request takes.
    """

    def __init__(
        self, *, most: int = MOST, seconds: float = SECONDS, count_closed: Callable[[Reason], None] | None = None
    ) -> None:
        self.closed: Counter[Reason] = Counter()
        self._count_closed = count_closed
        self._most = most
        self._seconds = seconds
        self._open: dict[_Connection, asyncio.TimerHandle] = {}
        self._is_closed = False
        self._warnings = RareWarnings(log)

    def __len__(self) -> int:
        return len(self._open)

    def wrap(self, make: Callable[[], asyncio.BaseProtocol]) -> Callable[[], asyncio.Protocol]:
        """Wrap a factory of protocols, so that each connection it serves counts here and is bounded."""
        return lambda: _Connection(cast("asyncio.Protocol", make()), self)

    async def close(self) -> None:
        """End the open connections, and any that is made from now on."""
        self._is_closed = True
        for _ in range(_LAST_ROUNDS):
            for connection in list(self._open):
                connection.abort()
            await asyncio.sleep(0)

    def admit(self, connection: _Connection) -> None:
        """Take a connection in."""
        while len(self._open) >= self._most:
            self._close(next(iter(self._open)), "crowded")
        timer = asyncio.get_running_loop().call_later(self._seconds, self._close, connection, "slow")
        self._open[connection] = timer
        if self._is_closed:
            connection.abort()

    def forget(self, connection: _Connection) -> None:
        """Take note that a connection is gone."""
        if (timer := self._open.pop(connection, None)) is not None:
            timer.cancel()

    def _close(self, connection: _Connection, reason: Reason) -> None:
        self.forget(connection)
        self.closed[reason] += 1
        if self._count_closed is not None:
            self._count_closed(reason)
        connection.abort()
        self._warnings.warn("a connection was closed: %s; so far %s", reason, dict(self.closed))


class _Connection(asyncio.Protocol):
    """One connection: passes everything on to the protocol that serves it."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._transport: asyncio.Transport | None = None

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.admit(self)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.forget(self)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
