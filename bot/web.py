"""The HTTP server: one application that platforms, webhooks and probes put their paths into."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from bot.connections import Connections
from bot.errors import SettingsError

Receive = Callable[[web.Request], Awaitable[web.StreamResponse]]

_CLOSING_SECONDS = 2.0
_ACCEPTING_ROUNDS = 3  # of the loop, within which what was accepted has become a connection
_UNREAD_SECONDS = 1.0  # for so long the rest of what nobody wants to read may go on coming in
_MOST_HEADERS, _LONGEST_HEADER = 64, 4_096
_BUFFER = 16_384  # bytes of a body that are taken in before somebody reads it

log = logging.getLogger(__name__)


def make_application() -> web.Application:
    """Return an application without paths. Each connection carries one request.

    So none is held without asking for something, and no proxy sends a request into one that is just being closed.
    """
    return web.Application(middlewares=[_close_afterwards])


@web.middleware
async def _close_afterwards(request: web.Request, handler: Receive) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as refusal:
        refusal.force_close()
        raise
    response.force_close()
    return response


class _QuietLogger(logging.LoggerAdapter[logging.Logger]):
    """Tells in one line, at a level of its own, of requests that are no HTTP: anybody can send as many as they like."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        if isinstance(exc_info, HttpProcessingError | web.RequestPayloadError | ConnectionError):
            self.logger.info("a request could not be read (%s)", type(exc_info).__name__)
        else:
            super().exception(msg, *args, exc_info=exc_info, **more)


class LatePostRoutes:
    """Paths that are opened and closed while the server runs: an application takes no new ones once it is served."""

    def __init__(self) -> None:
        self._open: dict[str, Receive] = {}
        self._closed = False

    def add_post(self, path: str, receive: Receive) -> None:
        """Let requests be posted to a path."""
        self._open[path] = receive

    def close(self) -> None:
        """Take nothing more in; who posts is asked to try again."""
        self._closed = True

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Hand a request on; one that comes too early or too late is to be sent again."""
        receive = self._open.get(request.path)
        if receive is None or self._closed:
            raise web.HTTPServiceUnavailable(text="No requests are accepted at the moment. Try again.")
        return await receive(request)


@asynccontextmanager
async def run_http_server(
    application: web.Application,
    *,
    host: str,
    port: int,
    connections: Connections | None = None,
    advice: str = "Set CITEBOT_WEB_HOST and CITEBOT_WEB_PORT (0 takes any port that is free).",
) -> AsyncIterator[str]:
    """Serve the application for as long as the context is open, at the address that is returned.

    Port 0 takes any that is free. Raises `SettingsError`, with the advice, where it cannot be listened at.
    """
    bounds = Connections() if connections is None else connections
    runner = web.AppRunner(
        application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_SECONDS,
        lingering_time=_UNREAD_SECONDS, keepalive_timeout=0, auto_decompress=False, read_bufsize=_BUFFER,
        logger=_QuietLogger(log),
        max_headers=_MOST_HEADERS, max_line_size=_LONGEST_HEADER, max_field_size=_LONGEST_HEADER,
    )  # fmt: skip
    await runner.setup()
    listener: asyncio.Server | None = None
    try:
        listener = await _listen(runner, bounds, host, port, advice)
        taken = listener.sockets[0].getsockname()
        yield f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"
    finally:
        if listener is not None:
            await stop_accepting(listener)
            listener.close()
        await runner.cleanup()
        await bounds.close()


async def stop_accepting(listener: asyncio.Server) -> None:
    """Take no more connections in, and let those that were accepted be made.

    To close at once would lose a connection that was accepted in the same moment: until Python 3.13 it then lies about,
    neither served nor closed, until memory is next cleared up.
    """
    loop = asyncio.get_running_loop()
    for each in listener.sockets:
        loop.remove_reader(each.fileno())
    for _ in range(_ACCEPTING_ROUNDS):
        await asyncio.sleep(0)


async def _listen(runner: web.AppRunner, connections: Connections, host: str, port: int, advice: str) -> asyncio.Server:
    if runner.server is None:
        raise AssertionError("a runner that is set up has a server")
    try:
        return await asyncio.get_running_loop().create_server(connections.wrap(runner.server), host, port)
    except OSError as error:
        raise SettingsError(f"Nothing can listen at {host}:{port} ({_reason(error)}). {advice}") from error


def _reason(error: OSError) -> str:
    """What the operating system said; asyncio puts the address before it, which is told already."""
    return (error.strerror or str(error)).rpartition(": ")[2]
