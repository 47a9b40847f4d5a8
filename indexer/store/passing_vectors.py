"""Vectors of a generation that is built once beside another one: its arrays keep them, and this only hands them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexer.embedding.static_name import STATIC
from indexer.errors import MissingVectors

if TYPE_CHECKING:
    from indexer.embedding.embedder import Embedder
    from indexer.store.vectors import FloatArray, VectorStore


class PassingVectors:
    """A store of vectors that forgets when it is closed; what another store has is taken from there, and left there."""

    def __init__(self, dimensions: int, known: VectorStore | None = None) -> None:
        self._dimensions = dimensions
        self._known = known
        self._rows: dict[str, FloatArray] = {}

    def find_missing(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that have no vector, neither here nor in the other store."""
        new = [key for key in keys if key not in self._rows]
        return set(new) if self._known is None else self._known.find_missing(new)

    def add(self, keys: Sequence[str], vectors: FloatArray) -> None:
        """Keep a row for each key."""
        self._rows.update(zip(keys, vectors, strict=True))

    def settle(self) -> None:
        """Do nothing: all of it is forgotten."""

    def get(self, keys: Sequence[str]) -> FloatArray:
        """Return the rows in the order of the keys; `MissingVectors` if one has none."""
        elsewhere = [key for key in dict.fromkeys(keys) if key not in self._rows]
        if elsewhere and self._known is None:
            raise MissingVectors(f"There is no vector of {elsewhere[0]}.")
        rows = dict(self._rows)
        if elsewhere and self._known is not None:
            rows.update(zip(elsewhere, self._known.get(elsewhere), strict=True))
        found = np.empty((len(keys), self._dimensions), dtype=np.float32)
        for place, key in enumerate(keys):
            found[place] = rows[key]
        return found

    def remove(self, keys: Sequence[str]) -> None:
        """Forget the keys."""
        for key in keys:
            self._rows.pop(key, None)

    def find_nearest(self, query: FloatArray, k: int) -> list[tuple[str, float]]:  # noqa: ARG002
        """Find nothing: who searches has the arrays."""
        return []

    def count(self) -> int:
        """Return the number of keys that are kept here."""
        return len(self._rows)

    def close(self) -> None:
        """Forget everything; the other store stays open."""
        self._rows.clear()


@dataclass(frozen=True, slots=True)
class PassingVectorPlace:
    """Keeps such vectors while a generation is built; `open_known` opens the store of the repository's own index.

    Vectors of the bundled embedder are computed again: that takes less time than to open a store.
    """

    open_known: Callable[[], VectorStore]
    keeps: bool = False

    def open(self, embedder: Embedder) -> PassingVectors:
        """Begin without a vector."""
        known = None if embedder.name.startswith(STATIC) else self.open_known()
        return PassingVectors(embedder.dimensions, known)

    def is_intact(self) -> bool:
        """Say yes: none is kept that could be lost."""
        return True

    def clear(self) -> None:
        """Do nothing: nothing is kept."""
