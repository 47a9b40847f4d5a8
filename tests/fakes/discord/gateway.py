"""The gateway: HELLO, heartbeats, IDENTIFY with its refusals, RESUME with what was missed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.discord.frames import Zstandard
from tests.fakes.discord.intents import Portal, delivered
from tests.fakes.discord.payloads import guild_create
from tests.fakes.discord.sessions import (
    HEARTBEAT,
    HEARTBEAT_ACK,
    HELLO,
    IDENTIFY,
    INVALID_SESSION,
    RESUME,
    Connection,
    Dispatch,
    Session,
)
from tests.fakes.discord.world import Event, World
from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.wire import JSON

BAD_TOKEN, FORBIDDEN_INTENTS = 4004, 4014


class Gateway:
    """The server's side. `heartbeat_interval` is in milliseconds; `down` refuses connections with this HTTP status."""

    def __init__(self, world: World, portal: Portal, token: Callable[[], str], changes: Changes) -> None:
        self.base_url = ""
        self.heartbeat_interval = 41_250
        self.down: int | None = None
        self.empty_readies = 0  # so many sessions begin with a READY that says nothing
        self.connections: list[Connection] = []
        self.sessions: list[Session] = []
        self.opened: list[Connection] = []  # all that there ever were
        self._world = world
        self._portal = portal
        self._token = token
        self._changes = changes

    @property
    def url(self) -> str:
        """The address that a client begins with."""
        return f"{self.base_url.replace('http', 'ws', 1)}/gateway"

    @property
    def resume_url(self) -> str:
        """The address at which a session continues."""
        return f"{self.base_url.replace('http', 'ws', 1)}/resume"

    def dispatched(self, name: str) -> list[Dispatch]:
        """The events of one name, of all sessions."""
        return [event for session in self.sessions for event in session.sent if event.name == name]

    def publish(self, event: Event) -> None:
        """Send an event to every session that may have it."""
        for session in self.sessions:
            data = delivered(event, session.intents)
            if data is not None:
                session.dispatch(event.name, data)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection until it ends."""
        if self.down is not None:
            return web.Response(status=self.down, text="the fake was told to be down")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        connection = self._admitted(socket, request)
        writing = asyncio.ensure_future(connection.write())
        try:
            self._greet(connection)
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._take(connection, message.data)
        finally:
            self._lose(connection)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        return socket

    def drop(self) -> None:
        """Break all connections without a word; their sessions can be resumed."""
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()
            self._lose(connection)

    def close_with(self, code: int) -> None:
        """Close all connections with a code."""
        for connection in list(self.connections):
            connection.close(code)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell the app that its session is invalid; unless resumable, it is gone."""
        for connection in list(self.connections):
            connection.send(INVALID_SESSION, resumable)
        if not resumable:
            self.forget()

    def forget(self) -> None:
        """Let no session be resumed any more, without telling."""
        for session in self.sessions:
            session.connection, session.lost_at = None, float("-inf")

    async def close(self) -> None:
        """Close all connections."""
        for connection in list(self.connections):
            await connection.socket.close(code=1001)

    def _admitted(self, socket: web.WebSocketResponse, request: web.Request) -> Connection:
        connection = Connection(
            id=f"G{len(self.opened) + 1}",
            socket=socket,
            transport=request.transport,
            packing=Zstandard(),
            path=request.path,
        )
        self.connections.append(connection)
        self.opened.append(connection)
        self._changes.tell()
        return connection

    def _greet(self, connection: Connection) -> None:
        connection.send(HELLO, {"heartbeat_interval": self.heartbeat_interval, "_trace": ["fake"]})

    def _lose(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
        for session in self.sessions:
            if session.connection is connection:
                session.connection, session.lost_at = None, self._world.clock.now()
        self._changes.tell()

    def _take(self, connection: Connection, text: str) -> None:
        frame: JSON = json.loads(text)
        self._obey(connection, frame.get("op"), frame.get("d"))
        self._changes.tell()

    def _obey(self, connection: Connection, op: int | None, data: Any) -> None:
        if op == HEARTBEAT:
            connection.send(HEARTBEAT_ACK)
        elif op in {IDENTIFY, RESUME}:
            self._begin(connection, op == RESUME, data)

    def _begin(self, connection: Connection, resuming: bool, data: JSON) -> None:
        if data.get("token", "").removeprefix("Bot ") != self._token():
            connection.close(BAD_TOKEN)
        elif resuming:
            self._resume(connection, data)
        else:
            self._identify(connection, data)

    def _identify(self, connection: Connection, data: JSON) -> None:
        intents, shard = int(data["intents"]), data.get("shard") or [0, 1]
        if self._portal.forbids(intents):
            connection.close(FORBIDDEN_INTENTS)
        else:
            session = Session(id=f"session{len(self.sessions) + 1}", intents=intents, connection=connection)
            self.sessions.append(session)
            self._welcome(session, shard)

    def _welcome(self, session: Session, shard: list[int]) -> None:
        world = self._world
        guilds = [each for each in world.guilds.values() if each.installed]
        ready: JSON = {"v": 10, "user": world.bot.wire() | {"verified": True, "mfa_enabled": False, "flags": 0}}
        ready |= {"guilds": [{"id": each.id, "unavailable": True} for each in guilds], "session_id": session.id}
        ready |= {"resume_gateway_url": self.resume_url, "session_type": "normal", "shard": shard}
        ready |= {"application": {"id": world.bot.id, "flags": self._portal.flags}, "private_channels": []}
        if self.empty_readies:
            self.empty_readies -= 1
            ready = {}
        session.dispatch("READY", ready)
        for guild in guilds:
            event = Event(name="GUILD_CREATE", data=guild_create(world, guild), guild_id=guild.id)
            if (data := delivered(event, session.intents)) is not None:
                session.dispatch(event.name, data)

    def _resume(self, connection: Connection, data: JSON) -> None:
        session = next((each for each in self.sessions if each.id == data.get("session_id")), None)
        seq = int(data.get("seq") or 0)
        if session is None or self._is_dead(session):
            connection.send(INVALID_SESSION, False)
        else:
            session.resume(connection, seq)

    def _is_dead(self, session: Session) -> bool:
        since = session.lost_at
        return since is not None and self._world.clock.now() - since > self._world.rules.dead_after
