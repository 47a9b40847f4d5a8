"""The HTTP server: one Starlette application under uvicorn, with limits for every exchange."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from bot.errors import SettingsError
from bot.http.connections import Connection, Connections

LOOPBACK = "127.0.0.1"
UNKNOWN_PATH = "other"

CountRequest = Callable[[str, int], None]
Respond = Callable[[Request], Awaitable[Response]]

_CLOSING_SECONDS = 2.0
_ACCEPTING_ROUNDS = 3  # of the loop, within which what was accepted has become a connection
_UNREAD_SECONDS = 1.0  # time for the rest of an unwanted body to arrive
_PATIENCE_SECONDS = 20.0  # for which one piece may wait for its reader
_MAX_HEAD = 16_384

log = logging.getLogger(__name__)


def make_application() -> Starlette:
    """Return an application without paths; those of surfaces are added to its router."""
    application = Starlette(exception_handlers={HTTPException: _refuse}, middleware=[Middleware(GZipMiddleware)])
    application.router.redirect_slashes = False
    return application


async def _refuse(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return PlainTextResponse(error.detail, error.status_code, error.headers)


class LatePostRoutes:
    """Paths known from the beginning, opened and closed while the server runs."""

    def __init__(self) -> None:
        self._open: dict[str, Respond] = {}
        self._closed = False

    def add_post(self, path: str, receive: Respond) -> None:
        """Open a path for posts."""
        self._open[path] = receive

    def close(self) -> None:
        """Accept nothing more; ask callers to try again."""
        self._closed = True

    async def receive(self, request: Request) -> Response:
        """Pass a request on; one before opening or after closing gets a 503."""
        receive = self._open.get(request.scope["path"])
        if receive is None or self._closed:
            raise HTTPException(503, "No requests are accepted at the moment. Try again.")
        return await receive(request)


class _Exchange:
    """One request and its answer, the only ones of their connection, with time limits."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.status = 500
        self.connection: Connection = scope["state"]["connection"]
        self._receive = receive
        self._send = send
        self._is_unread = any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])

    async def receive(self) -> Message:
        message = await self._receive()
        self._is_unread = bool(message.get("more_body"))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            # One request a connection: none is held without asking for something, and no proxy sends a request into
            # one that is just being closed.
            others = [each for each in message.get("headers", ()) if each[0].lower() != b"connection"]
            own = [(b"connection", b"close"), (b"date", formatdate(usegmt=True).encode())]
            message = {**message, "headers": [*others, *own]}
        elif self._is_unread and not message.get("more_body"):
            await self._put({**message, "more_body": True})
            # Read on for a moment: anyone who is still sending would not see the answer if the connection was closed
            with suppress(TimeoutError):
                async with asyncio.timeout(_UNREAD_SECONDS):
                    while self._is_unread:
                        await self.receive()
            message = {"type": "http.response.body", "body": b""}
        await self._put(message)

    async def _put(self, message: Message) -> None:
        if self.connection.transport.is_closing():
            await asyncio.sleep(0)  # so that a stream can hear that its reader has gone
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._send(message)
        except TimeoutError:
            log.info("an answer was given up: its reader took nothing for %g s", _PATIENCE_SECONDS)
            self.connection.transport.abort()


def _bound(application: ASGIApp, count_request: CountRequest | None) -> ASGIApp:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope, receive, send)
        try:
            await application(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            log.debug("a request was interrupted at the end of the server")
        finally:
            exchange.connection.bounds.release(exchange.connection)
            if count_request is not None:
                count_request(_name_path(scope), exchange.status)

    return serve


def _name_path(scope: Scope) -> str:
    """Return the registered name of a path; all unserved paths share one."""
    route = scope.get("route")
    return UNKNOWN_PATH if route is None or isinstance(route, Mount) else f"{scope['root_path']}{route.path}"


@asynccontextmanager
async def run_http_server(
    application: ASGIApp,
    *,
    host: str,
    port: int,
    connections: Connections | None = None,
    count_request: CountRequest | None = None,
    advice: str = "Set CITEBOT_WEB_HOST and CITEBOT_WEB_PORT (0 = any free port).",
) -> AsyncIterator[str]:
    """Serve the application for as long as the context is open, at the address that is returned.

    Port 0 takes any free port. Raises `SettingsError`, with advice, if the port cannot be opened.
    """
    bounds, state = Connections() if connections is None else connections, ServerState()
    config = Config(
        _bound(application, count_request), http="h11", ws="none", lifespan="off", interface="asgi3", log_config=None,
        log_level="error", access_log=False, server_header=False, date_header=False, proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEAD,
    )  # fmt: skip
    config.load()
    listener = await _listen(lambda: Connection(bounds, config, state), host, port, advice)
    try:
        taken = listener.sockets[0].getsockname()
        yield f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"
    finally:
        await stop_accepting(listener)
        listener.close()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=_CLOSING_SECONDS)
        await bounds.close()
        for task in state.tasks:
            task.cancel()
        if state.tasks:
            await asyncio.wait(state.tasks)


async def stop_accepting(listener: asyncio.Server) -> None:
    """Accept no more connections, but serve the accepted ones.

    Closing at once would lose a connection that was accepted at the same moment: until Python 3.13
    it is then neither served nor closed until the next garbage collection.
    """
    loop = asyncio.get_running_loop()
    for each in listener.sockets:
        loop.remove_reader(each.fileno())
    for _ in range(_ACCEPTING_ROUNDS):
        await asyncio.sleep(0)


async def _listen(make: Callable[[], asyncio.Protocol], host: str, port: int, advice: str) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(make, host, port)
    except OSError as error:
        # asyncio puts the address before what the operating system says.
        reason = (error.strerror or str(error)).rpartition(": ")[2]
        taken = error.errno == errno.EADDRINUSE
        what = f"Port {port} is already in use" if taken else f"citebot cannot listen at {host}:{port} ({reason})"
        raise SettingsError(f"{what}. {advice}") from error
