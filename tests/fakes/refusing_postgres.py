"""A server that speaks just enough of Postgres's protocol to refuse a connection, or to be of an early version."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_SSL_REQUEST, _GSS_REQUEST = 80_877_103, 80_877_104


@asynccontextmanager
async def refuse_connections(code: str, sentence: str) -> AsyncIterator[str]:
    """Answer every connection with an error; give the address."""
    fields = [b"SFATAL", b"VFATAL", f"C{code}".encode(), f"M{sentence}".encode()]
    async with _serve(_make_message(b"E", b"".join(field + b"\0" for field in fields) + b"\0")) as url:
        yield url


@asynccontextmanager
async def be_of_version(version: str) -> AsyncIterator[str]:
    """Let everybody in, as a server of a version, and answer nothing more; give the address."""
    answers = [
        _make_message(b"R", struct.pack("!i", 0)),
        *(_make_message(b"S", f"{name}\0{value}\0".encode()) for name, value in _list_parameters(version)),
        _make_message(b"Z", b"I"),
    ]
    async with _serve(b"".join(answers)) as url:
        yield url


@asynccontextmanager
async def _serve(answer: bytes) -> AsyncIterator[str]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (length,) = struct.unpack("!i", await reader.readexactly(4))
                (request,) = struct.unpack("!i", (await reader.readexactly(length - 4))[:4])
                if request not in {_SSL_REQUEST, _GSS_REQUEST}:
                    break
                writer.write(b"N")
            writer.write(answer)
            await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"postgresql://ann:hunter2@127.0.0.1:{port}/shop"


def _make_message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _list_parameters(version: str) -> list[tuple[str, str]]:
    return [("server_version", version), ("client_encoding", "UTF8"), ("standard_conforming_strings", "on")]
