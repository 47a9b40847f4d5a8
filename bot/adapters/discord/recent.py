"""A memory of the last things only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MOST = 2_000


class Recent(Generic[K, V]):
    """A table that drops what was put in longest ago."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()

    def put(self, key: K, value: V) -> None:
        """Remember a value."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def get(self, key: K) -> V | None:
        """Return a value; None where it is not remembered."""
        return self._kept.get(key)

    def pop(self, key: K) -> V | None:
        """Return a value and forget it."""
        return self._kept.pop(key, None)

    def __iter__(self) -> Iterator[K]:
        return iter(self._kept)

    def __contains__(self, key: K) -> bool:
        return key in self._kept
