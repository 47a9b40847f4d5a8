"""The HTTP server: one application that platforms, webhooks and probes put their paths into."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from bot.errors import SettingsError

Receive = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_BODY = 8 * 1024 * 1024  # bytes; the largest webhook is that of a push of many commits
_CLOSING_SECONDS = 2.0
_UNREAD_SECONDS = 1.0  # for so long the rest of what nobody wants to read may go on coming in


def application() -> web.Application:
    """Return an application without paths."""
    return web.Application(client_max_size=MAX_BODY)


class Doors:
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
            raise web.HTTPServiceUnavailable(text="Nothing is taken in here at the moment. Try again.")
        return await receive(request)


@asynccontextmanager
async def served(application: web.Application, *, host: str, port: int) -> AsyncIterator[str]:
    """Serve the application for as long as the context is open, at the address that is returned.

    Port 0 takes any that is free. Raises `SettingsError` where it cannot be listened at.
    """
    runner = web.AppRunner(
        application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_SECONDS,
        lingering_time=_UNREAD_SECONDS,
    )  # fmt: skip
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise SettingsError(
                f"Nothing can listen at {host}:{port} ({_reason(error)}). Set CITEBOT_WEB_HOST and "
                "CITEBOT_WEB_PORT (0 takes any port that is free)."
            ) from error
        taken = runner.addresses[0]
        yield f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"
    finally:
        await runner.cleanup()


def _reason(error: OSError) -> str:
    """What the operating system said; asyncio puts the address before it, which is told already."""
    return (error.strerror or str(error)).rpartition(": ")[2]
