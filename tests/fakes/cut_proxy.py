"""A proxy before a server that can lose it: connections are reset, refused, held up, or hang without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlsplit

Mode = Literal["pass", "hang", "refuse"]


class CutProxy:
    """Passes everything on in both directions until told otherwise; `delay` is in seconds for each piece."""

    def __init__(self, host: str, port: int) -> None:
        self.delay = 0.0
        self.port = 0
        self._server = (host, port)
        self._passes = asyncio.Event()
        self._passes.set()
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()

    def set_mode(self, mode: Mode) -> None:
        """Let everything pass, hang, or be refused; what is connected stays so."""
        self._refuses = mode == "refuse"
        if mode == "hang":
            self._passes.clear()
        else:
            self._passes.set()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        if self._refuses:
            writer.transport.abort()
            return
        behind, before = await asyncio.open_connection(*self._server)
        self._writers |= {writer, before}
        await asyncio.gather(self._pass_on(reader, before), self._pass_on(behind, writer))
        self._writers -= {writer, before}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                await self._passes.wait()
                await asyncio.sleep(self.delay)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass  # one side was reset; the other one is closed as well
        finally:
            writer.close()


@asynccontextmanager
async def open_cut_proxy(url: str) -> AsyncIterator[tuple[CutProxy, str]]:
    """Open a proxy before the server of an address; also return the address that leads through it."""
    parts = urlsplit(url)
    proxy = CutProxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    user, _, _ = parts.netloc.rpartition("@")
    try:
        yield proxy, parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}").geturl()
    finally:
        server.close()
        proxy.set_mode("pass")
        proxy.cut()
