"""Socket Mode: WebSocket connections that carry envelopes to the app and acknowledgements back."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import WSMsgType, web

from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.deliveries import ACK_WITHIN, Delivery, Outcome
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.workspace import APP_ID

Reason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]
MAX_CONNECTIONS = 10
CONNECTION_SECONDS, DEBUG_CONNECTION_SECONDS = 18_060, 360


@dataclass(kw_only=True, slots=True, eq=False)
class Connection:
    """One open WebSocket of the app; `received` are all frames that came from it."""

    id: str
    socket: web.WebSocketResponse
    transport: asyncio.Transport | None
    debug: bool
    leaving: bool = False
    pending: dict[str, asyncio.Future[bool]] = field(default_factory=dict)
    answers: dict[str, JSON] = field(default_factory=dict)
    received: list[JSON] = field(default_factory=list)


class SocketMode:
    """The server's side of Socket Mode."""

    def __init__(self, clock: Clock, changes: Changes) -> None:
        self.base_url = ""
        self.connections: list[Connection] = []
        self.opened = 0  # connections ever made
        self.enabled = True
        self.answers_pings = True
        self.refusals = 0  # so many connections are refused, with tickets that are used up by it
        self.late_acks: list[str] = []  # envelopes acknowledged after Slack had given up waiting
        self._clock = clock
        self._changes = changes
        self._tickets: set[str] = set()
        self._turn = itertools.count()

    def open_connection(self, args: Args) -> JSON:
        """Answer apps.connections.open with an address that is good for one connection."""
        if not self.enabled:
            raise SlackError("socket_mode_not_enabled")
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        debug = "&debug_reconnects=true" if args.flag("debug_reconnects") else ""
        return {"url": f"{self.base_url.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={APP_ID}{debug}"}

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection until it ends."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden(text="unknown ticket")
        self._tickets.remove(ticket)
        if self.refusals:
            self.refusals -= 1
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse(autoping=self.answers_pings)
        await socket.prepare(request)
        connection = self._admitted(socket, request)
        try:
            with suppress(ConnectionError):  # an app that is killed goes away in mid-sentence
                await self._greet(connection)
                async for message in socket:
                    if message.type is WSMsgType.TEXT:
                        self._take(connection, json.loads(message.data))
        finally:
            self._lose(connection)
        return socket

    async def attempt(self, delivery: Delivery, number: int, reason: str) -> tuple[str, Outcome]:
        """Send an envelope to one of the connections and wait for its acknowledgement."""
        connection = self._next()
        if connection is None:
            return "", Outcome(acked=False, reason="timeout")
        envelope = uuid.uuid4().hex
        acked = asyncio.get_running_loop().create_future()
        connection.pending[envelope] = acked
        try:
            await connection.socket.send_json(_enveloped(envelope, delivery, number, reason))
            in_time = await self._clock.within(ACK_WITHIN, acked)
        except ConnectionError:
            in_time = False
        finally:
            connection.pending.pop(envelope, None)
        if not in_time or not acked.result():
            return connection.id, Outcome(acked=False, reason="timeout")
        return connection.id, Outcome(acked=True, answer=connection.answers.pop(envelope))

    async def disconnect(self, reason: Reason, connection: Connection | None = None) -> None:
        """Tell one connection, or all, to go; after anything but a warning nothing more is sent to it."""
        for each in [connection] if connection else list(self.connections):
            each.leaving = reason != "warning"
            await each.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})

    def abort(self, connection: Connection | None = None) -> None:
        """Break one connection, or all, without a word."""
        for each in [connection] if connection else list(self.connections):
            if each.transport is not None:
                each.transport.abort()
            self._lose(each)

    async def close(self) -> None:
        """Close all connections."""
        for connection in list(self.connections):
            await connection.socket.close()

    def _admitted(self, socket: web.WebSocketResponse, request: web.Request) -> Connection:
        self.opened += 1
        connection = Connection(
            id=f"S{self.opened}",
            socket=socket,
            transport=request.transport,
            debug=request.query.get("debug_reconnects") == "true",
        )
        self.connections.append(connection)
        self._changes.tell()
        return connection

    async def _greet(self, connection: Connection) -> None:
        if len(self.connections) > MAX_CONNECTIONS:
            await self.disconnect("too_many_websockets", connection)
            await connection.socket.close()
            return
        seconds = DEBUG_CONNECTION_SECONDS if connection.debug else CONNECTION_SECONDS
        hello: JSON = {"type": "hello", "num_connections": len(self.connections)}
        debug = {"host": "fake", "build_number": 1, "approximate_connection_time": seconds}
        await connection.socket.send_json(hello | {"connection_info": {"app_id": APP_ID}, "debug_info": debug})

    def _take(self, connection: Connection, frame: JSON) -> None:
        connection.received.append(frame)
        envelope = str(frame.get("envelope_id", ""))
        waiting = connection.pending.get(envelope)
        if waiting is None:
            self.late_acks.append(envelope)
        elif not waiting.done():
            connection.answers[envelope] = frame.get("payload") or {}
            waiting.set_result(True)
        self._changes.tell()

    def _lose(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
        for waiting in connection.pending.values():
            if not waiting.done():
                waiting.set_result(False)
        self._changes.tell()

    def _next(self) -> Connection | None:
        ready = [each for each in self.connections if not each.leaving and not each.socket.closed]
        return ready[next(self._turn) % len(ready)] if ready else None


def _enveloped(envelope: str, delivery: Delivery, number: int, reason: str) -> JSON:
    frame: dict[str, Any] = {
        "envelope_id": envelope,
        "type": delivery.kind,
        "payload": delivery.payload,
        "accepts_response_payload": delivery.kind != "events_api",
    }
    return frame | ({"retry_attempt": number, "retry_reason": reason} if delivery.kind == "events_api" else {})
