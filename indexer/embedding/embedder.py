"""Turns text into vectors: the port for the index, and the choice of an embedder by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingInput:
    """One chunk for an embedder: `header` is its place (path, scope, defined names), `body` its text."""

    header: str
    body: str


class Embedder(Protocol):
    """Maps chunks and questions into one space, where the dot product of unit vectors is their similarity.

    Its methods block, and may be called from several threads at once.
    """

    @property
    def name(self) -> str:
        """Identifies model and recipe: vectors of embedders with different names must not be compared."""

    @property
    def dimensions(self) -> int:
        """The length of a vector; `EmbedderError` if the model must be asked and does not answer."""

    def embed_documents(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        """Return one unit row for each input, zeros for unknown text; `EmbedderError` if there is no answer."""

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a question, zeros for unknown text; `EmbedderError` as above."""


def normalize_rows(matrix: FloatArray) -> FloatArray:
    """Scale every row to length 1, except zeros."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: FloatArray = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled
