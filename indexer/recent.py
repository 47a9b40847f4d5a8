"""Keeps what was asked for last, for threads that ask for it again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _one(_: object) -> int:
    return 1


class Recent(Generic[Key, Value]):
    """The values that were used last, as many as together weigh no more than `most`, and always the very last one.

    Each weighs one unless `weigh` says otherwise. A value is shared by all who get it.
    """

    def __init__(self, most: int, weigh: Callable[[Value], int] = _one) -> None:
        self._most = most
        self._weigh = weigh
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return what is kept under a key."""
        with self._lock:
            if (value := self._values.get(key)) is not None:
                self._values.move_to_end(key)
            return value

    def keep(self, key: Key, value: Value) -> Value:
        """Keep a value, which is returned; those that were used longest ago give way."""
        with self._lock:
            self._drop(self._values.pop(key, None))
            self._values[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._most and len(self._values) > 1:
                self._drop(self._values.popitem(last=False)[1])
            return value

    def _drop(self, value: Value | None) -> None:
        if value is not None:
            self._weight -= self._weigh(value)
