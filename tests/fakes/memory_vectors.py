"""Vectors in memory: what every vector store has to agree with."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np

from indexer.store.vectors import FloatArray, _check_shape, _stack_in_order


class MemoryVectors:
    """Vectors in a dictionary, searched exactly; gone with the process."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._rows: dict[str, FloatArray] = {}
        self._lock = Lock()

    def find_missing(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that have no vector."""
        with self._lock:
            return {key for key in keys if key not in self._rows}

    def add(self, keys: Sequence[str], vectors: FloatArray) -> None:
        """Store a row for each key."""
        _check_shape(keys, vectors, self._dimensions)
        with self._lock:
            self._rows.update(zip(keys, np.array(vectors, dtype=np.float32), strict=True))

    def settle(self) -> None:
        """Do nothing: there is nothing to be read later."""

    def get(self, keys: Sequence[str]) -> FloatArray:
        """Return the rows in the order of the keys."""
        with self._lock:
            return _stack_in_order(keys, self._rows, self._dimensions)

    def remove(self, keys: Sequence[str]) -> None:
        """Forget the keys."""
        with self._lock:
            for key in keys:
                self._rows.pop(key, None)

    def find_nearest(self, query: FloatArray, k: int) -> list[tuple[str, float]]:
        """Return the `k` best keys; exact."""
        with self._lock:
            keys = list(self._rows)
            matrix = _stack_in_order(keys, self._rows, self._dimensions)
        scores = matrix @ query
        best = np.argsort(-scores, kind="stable")[: max(k, 0)]
        return [(keys[row], float(scores[row])) for row in best]

    def count(self) -> int:
        """Return the number of keys."""
        return len(self._rows)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._rows.clear()
