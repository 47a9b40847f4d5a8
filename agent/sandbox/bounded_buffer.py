"""Keeps the beginning and the end of an output of any length."""

from __future__ import annotations

from agent.sandbox.sandbox import BoundedOutput


class BoundedBuffer:
    """Takes an output piece by piece and keeps at most `most` bytes of it, half from each end."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0  # bytes that were taken

    def append(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half:  # not at every piece: to shorten a buffer copies what is left
            del self._tail[: -self._half]

    def read(self) -> BoundedOutput:
        """Return what was kept."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._half) :])
        return BoundedOutput(head=bytes(self._head), tail=tail, omitted=self.size - len(self._head) - len(tail))
