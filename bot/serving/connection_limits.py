"""Bounds the connections of a server: only so many at a time, and each for only so long."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Literal, cast

from bot.webhooks.throttled_warnings import RareWarnings

MOST = 128
MOST_LONG = 64  # of them whose requests take longer, because somebody known waits for an answer
_LAST_ROUNDS = 2  # of the loop, within which what was aborted is gone
SECONDS = 20.0  # for a request with its answer; a well-meant one takes a small part of it

Reason = Literal["crowded", "slow"]

log = logging.getLogger(__name__)


class Connections:
    """The open connections, the oldest first; if there are too many, the oldest makes room for the newest.

    So nobody can keep others out by holding connections: they would have to open the maximum within the time that one
    request takes. A connection of somebody who is known may be kept open for longer; it does not count among those that
    make room, and there are only `most_long` of them.
    """

    def __init__(
        self,
        *,
        most: int = MOST,
        most_long: int = MOST_LONG,
        seconds: float = SECONDS,
        count_closed: Callable[[Reason], None] | None = None,
    ) -> None:
        self.closed: Counter[Reason] = Counter()
        self._count_closed = count_closed
        self._most = most
        self._most_long = most_long
        self._seconds = seconds
        self._open: dict[_Connection, asyncio.TimerHandle] = {}
        self._long: dict[_Connection, asyncio.TimerHandle] = {}
        self._is_closed = False
        self._warnings = RareWarnings(log)

    def __len__(self) -> int:
        return len(self._open) + len(self._long)

    def wrap(self, make: Callable[[], asyncio.BaseProtocol]) -> Callable[[], asyncio.Protocol]:
        """Wrap a factory of protocols, so that each connection it serves counts here and is bounded."""
        return lambda: _Connection(cast("asyncio.Protocol", make()), self)

    async def close(self) -> None:
        """End the open connections, and any that is made from now on."""
        self._is_closed = True
        for _ in range(_LAST_ROUNDS):
            for connection in [*self._open, *self._long]:
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

    def keep_open(self, transport: asyncio.BaseTransport | None, seconds: float) -> bool:
        """Let a connection stay for so long from now, as for an answer that is streamed.

        False where too many are kept open already, or it is gone. Only who has shown who they are may ask for it.
        """
        connection = next((each for each in self._open if each.transport is transport), None)
        if connection is None or len(self._long) >= self._most_long:
            return False
        self.forget(connection)
        timer = asyncio.get_running_loop().call_later(seconds, self._close, connection, "slow")
        self._long[connection] = timer
        return True

    def forget(self, connection: _Connection) -> None:
        """Take note that a connection is gone."""
        timer = self._open.pop(connection, None) or self._long.pop(connection, None)
        if timer is not None:
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
        self.transport: asyncio.Transport | None = None

    def abort(self) -> None:
        """End it at once."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
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
