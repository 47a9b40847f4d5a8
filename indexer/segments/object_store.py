"""The port of an object store: objects that are written once, read in ranges, listed and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """An object as the store lists it; the time is the store's own, `size` is in bytes."""

    key: str
    size: int
    modified_at: datetime


class ObjectStore(Protocol):
    """Objects by key. Raises `SegmentsUnavailable` if the store cannot be used, `KeyError` for a missing object."""

    async def put(self, key: str, data: bytes) -> bool:
        """Write an object that is missing yet; False if it is, which then stays as it is."""

    async def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Read the bytes from `start` up to `end`, or to where the object ends."""

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """List the objects below a prefix, in any order."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no error."""
