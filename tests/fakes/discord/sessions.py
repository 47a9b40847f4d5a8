"""Sessions of the gateway: numbered events that outlive the connection over which they were sent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.discord.frames import Zstandard
from tests.fakes.loopback.wire import JSON

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 0, 1, 2, 6, 9, 10, 11


@dataclass(kw_only=True, eq=False)
class Connection:
    """One open WebSocket of the app."""

    id: str
    socket: web.WebSocketResponse
    transport: asyncio.Transport | None
    packing: Zstandard
    path: str
    _outbox: asyncio.Queue[JSON | int] = field(default_factory=asyncio.Queue)

    def send(self, op: int, data: Any = None, *, seq: int | None = None, name: str | None = None) -> None:
        """Put a frame on its way."""
        self._outbox.put_nowait({"op": op, "d": data, "s": seq, "t": name})

    def close(self, code: int) -> None:
        """Close the connection behind what is already on its way."""
        self._outbox.put_nowait(code)

    async def write(self) -> None:
        """Send what is in the outbox, for as long as the connection lives."""
        while isinstance(frame := await self._outbox.get(), dict):
            packed = self.packing.pack(json.dumps(frame))
            try:
                await self.socket.send_bytes(packed)
            except ConnectionError:
                return
        await self.socket.close(code=frame)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatch:
    """An event as a session sends it."""

    seq: int
    name: str
    data: Any


@dataclass(kw_only=True, eq=False)
class Session:
    """What an app began with IDENTIFY; without a connection, events wait to be resumed."""

    id: str
    intents: int
    connection: Connection | None
    sent: list[Dispatch] = field(default_factory=list)
    lost_at: float | None = None
    resumed: int = 0

    def dispatch(self, name: str, data: Any) -> None:
        """Number an event and send it, now or at the next RESUME."""
        event = Dispatch(seq=len(self.sent) + 1, name=name, data=data)
        self.sent.append(event)
        if self.connection is not None:
            self.connection.send(DISPATCH, data, seq=event.seq, name=name)

    def resume(self, connection: Connection, seq: int) -> None:
        """Continue over another connection, with what was missed first."""
        self.connection, self.lost_at = connection, None
        self.resumed += 1
        for event in self.sent[seq:]:
            connection.send(DISPATCH, event.data, seq=event.seq, name=event.name)
        self.dispatch("RESUMED", {"_trace": ["fake"]})
