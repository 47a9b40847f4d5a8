"""MCP over standard input and output: one message a line, until the input ends or the process is told to."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 8 << 20  # bytes
_UNREADABLE = "This message is too long."  # no JSON: the sender is told so


class Wire:
    """The two ends of the connection to the client. What else is printed in this process goes to standard error.

    The SDK's own reader sits in a thread until a line comes, and a signal would have to wait for it.
    """

    def __init__(self, source: _Lines, sink: _Sink) -> None:
        self.source = source
        self.sink = sink

    @classmethod
    async def take(cls) -> Wire:
        """Take standard input and output for the connection."""
        incoming, outgoing = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return cls(await _Lines.open(incoming), await _Sink.open(outgoing))


class _Lines:
    """Lines of a pipe, a socket or a file."""

    def __init__(self, reader: asyncio.StreamReader | Any) -> None:
        self._reader = reader

    @classmethod
    async def open(cls, descriptor: int) -> _Lines:
        file = os.fdopen(descriptor, "rb", 0)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return cls(_FileReader(file.read()))
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
        return cls(reader)

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:  # longer than the limit
                yield _UNREADABLE
                continue
            if not line:
                return
            if line.strip():
                yield line.decode("utf-8", "replace")


class _FileReader:
    """The lines of a file that was read."""

    def __init__(self, content: bytes) -> None:
        self._lines = iter(content.splitlines(keepends=True))

    async def readline(self) -> bytes:
        """Return the next line; nothing at the end."""
        return next(self._lines, b"")


class _Sink:
    """Writes text; a client that does not read is waited for, and can be left at any time."""

    def __init__(self, descriptor: int, transport: asyncio.WriteTransport | None, flow: _Flow) -> None:
        self._descriptor = descriptor
        self._transport = transport
        self._flow = flow
        self._pending = bytearray()

    @classmethod
    async def open(cls, descriptor: int) -> _Sink:
        flow = _Flow()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # never keeps anybody waiting
            return cls(descriptor, None, flow)
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: flow, os.fdopen(descriptor, "wb", 0))
        return cls(descriptor, transport, flow)

    async def write(self, text: str) -> None:
        """Take text in."""
        self._pending += text.encode()

    async def flush(self) -> None:
        """Send what was taken in."""
        data, self._pending = bytes(self._pending), bytearray()
        if self._transport is None:
            while data:
                data = data[os.write(self._descriptor, data) :]
            return
        self._transport.write(data)
        await self._flow.drain()

    async def close(self) -> None:
        """Send what is left, but wait for no one."""
        if self._transport is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await self._flow.drain()
            self._transport.abort() if self._flow.is_paused else self._transport.close()


class _Flow(asyncio.BaseProtocol):
    """Knows whether the other end takes more."""

    def __init__(self) -> None:
        self.is_paused = False
        self._may_write = asyncio.Event()
        self._may_write.set()

    def pause_writing(self) -> None:
        self.is_paused = True
        self._may_write.clear()

    def resume_writing(self) -> None:
        self.is_paused = False
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the other end is gone, whatever the reason
        self._may_write.set()

    async def drain(self) -> None:
        """Wait until the other end takes more, or is gone."""
        await self._may_write.wait()


async def serve_stdio(server: Server[Any], wire: Wire) -> None:
    """Serve one client until its input ends. Cancelled, it ends at once, even with calls in progress."""
    serving = asyncio.create_task(_serve(server, wire))
    try:
        await asyncio.wait({serving})
    finally:
        is_over = serving.done()
        serving.cancel()
        await asyncio.wait({serving})
        error = None if serving.cancelled() else serving.exception()
        if error is not None and not is_over:  # calls that found the wire closed
            log.debug("the connection was left in the middle of something", exc_info=error)
        await wire.sink.close()
    if error is not None:
        raise error


async def _serve(server: Server[Any], wire: Wire) -> None:
    from mcp.server.stdio import stdio_server

    streams: Any = wire.source, wire.sink  # the two methods of each that the SDK calls
    async with stdio_server(*streams) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
