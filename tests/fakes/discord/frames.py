"""Frames to the app, compressed in one stream per connection."""

from __future__ import annotations

import zstandard


class Zstandard:
    """`zstd-stream`: one frame of zstandard, a block for each frame of the gateway."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor().compressobj()

    def pack(self, text: str) -> bytes:
        """Return the next piece of the stream."""
        return self._stream.compress(text.encode()) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
