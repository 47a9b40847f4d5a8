"""Ends an HTTP server of the tests so that nothing of it outlives the loop."""

from __future__ import annotations

import asyncio

from aiohttp import web

from bot.http.server import stop_accepting


async def close_server(runner: web.AppRunner) -> None:
    """Clean up, once what was accepted at the last moment has become a connection that aiohttp knows of."""
    for site in runner.sites:
        listener = getattr(site, "_server", None)
        if isinstance(listener, asyncio.Server):
            await stop_accepting(listener)
    await runner.cleanup()
