"""MCP over standard input and output: one message per line, until the input ends or a signal comes."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any

from bot.tasks import run_abandonable

if TYPE_CHECKING:
    from mcp.server import Server

LONGEST_MESSAGE = 1_000_000  # bytes; the parts of a longer one are no JSON, and the sender is told so


class _Sink:
    """Writes to the client, which may read nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def write(self, text: str) -> None:
        """Send a text; it is lost if the client has left."""
        data = text.encode()
        while data:
            try:
                data = data[await run_abandonable(partial(os.write, self._descriptor, data)) :]
            except OSError:
                return

    async def flush(self) -> None:
        """Do nothing: all is sent when it is written."""


async def _read_lines(descriptor: int) -> AsyncIterator[str]:
    file = io.FileIO(descriptor)
    while line := await run_abandonable(partial(file.readline, LONGEST_MESSAGE)):
        if line.strip():
            yield line.decode("utf-8", "replace")


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until its input ends. If cancelled, it ends at once, even with calls in progress.

    The SDK's own streams wait in threads for the client, and a signal would have to wait for it.
    What else is printed in this process goes to standard error.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(null := os.open(os.devnull, os.O_RDONLY), 0)
    os.close(null)
    os.dup2(2, 1)
    serving = asyncio.create_task(_serve(server, incoming, outgoing))
    try:
        await asyncio.wait({serving})
        serving.result()
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)  # calls in progress find their streams closed


async def _serve(server: Server[Any], incoming: int, outgoing: int) -> None:
    from mcp.server.stdio import stdio_server

    streams: Any = _read_lines(incoming), _Sink(outgoing)  # with the methods that the SDK calls
    async with stdio_server(*streams) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
