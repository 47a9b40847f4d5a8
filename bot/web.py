"""The HTTP server: one application that platforms, webhooks and probes put their paths into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from bot.errors import SettingsError

MAX_BODY = 8 * 1024 * 1024  # bytes; the largest webhook is that of a push of many commits
_CLOSING_SECONDS = 2.0


def application() -> web.Application:
    """Return an application without paths."""
    return web.Application(client_max_size=MAX_BODY)


@asynccontextmanager
async def served(application: web.Application, *, host: str, port: int) -> AsyncIterator[str]:
    """Serve the application for as long as the context is open, at the address that is returned.

    Port 0 takes any that is free. Raises `SettingsError` where it cannot be listened at.
    """
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise SettingsError(
                f"Nothing can listen at {host}:{port} ({error.strerror}). Set CITEBOT_WEB_HOST and CITEBOT_WEB_PORT."
            ) from error
        taken = runner.addresses[0]
        yield f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"
    finally:
        await runner.cleanup()
