"""Requests as bytes, sent over sockets: whatever a client library would never send."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.waiting import LIMIT_SECONDS

Header = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back: the status, 0 if the connection just ended, and all the bytes."""

    status: int
    raw: bytes

    @property
    def body(self) -> bytes:
        """What follows the headers."""
        return self.raw.partition(b"\r\n\r\n")[2]


def write_request(
    method: str, path: str, headers: Sequence[Header] = (), body: bytes = b"", *, length: int | None = None
) -> bytes:
    """Write a request; `length` is what it says of its body, if that is not the truth."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers)]
    if body or length is not None:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def exchange(address: str, request: bytes) -> Answer:
    """Send bytes, and read until the connection ends."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=LIMIT_SECONDS) as line:
        with suppress(ConnectionError):  # anyone who refuses does not read to the end
            line.sendall(request)
        return read_answer(line)


def read_answer(line: socket.socket) -> Answer:
    """Read until the connection ends."""
    raw = bytearray()
    with suppress(ConnectionError):
        while part := line.recv(65_536):
            raw += part
    first = raw.split(b"\r\n", 1)[0].split()
    return Answer(status=int(first[1]) if len(first) > 1 and first[1].isdigit() else 0, raw=bytes(raw))
