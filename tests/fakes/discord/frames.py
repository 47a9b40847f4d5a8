"""How frames travel to the app: as text, or compressed in one stream per connection."""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard


class Packing(Protocol):
    """A way to put a frame on the wire."""

    def pack(self, text: str) -> str | bytes:
        """Return what is sent: text stays text, bytes are a binary frame."""


class Plain:
    """No compression."""

    def pack(self, text: str) -> str | bytes:
        """Return the text."""
        return text


class Zlib:
    """`zlib-stream`: one context, flushed after each frame."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj()

    def pack(self, text: str) -> str | bytes:
        """Return the next piece of the stream."""
        return self._stream.compress(text.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)


class Zstandard:
    """`zstd-stream`: one frame of zstandard, a block for each frame of the gateway."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor().compressobj()

    def pack(self, text: str) -> str | bytes:
        """Return the next piece of the stream."""
        return self._stream.compress(text.encode()) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


def packing(asked: str) -> Packing:
    """The packing that a connection asks for."""
    kinds: dict[str, type[Zlib] | type[Zstandard]] = {"zlib-stream": Zlib, "zstd-stream": Zstandard}
    return kinds[asked]() if asked in kinds else Plain()
