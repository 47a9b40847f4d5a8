"""Turns text into vectors: the port that the index sees, and the choice of an embedder by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pydantic import SecretStr

FloatArray = NDArray[np.float32]

STATIC = "static"


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingInput:
    """What is known of one chunk: `header` is where it stands (path, scope, names it defines), `body` its text."""

    header: str
    body: str


class Embedder(Protocol):
    """Maps chunks and questions into one space, where the dot product of unit vectors is their likeness.

    Its methods block, and may be called from several threads at once.
    """

    @property
    def name(self) -> str:
        """Identifies model and recipe: vectors of embedders with different names must not be compared."""

    @property
    def dimensions(self) -> int:
        """The length of a vector; `EmbedderError` if the model has to be asked and does not answer."""

    def embed_documents(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        """Return one unit row for each input, zeros where nothing is known; `EmbedderError` if there is no answer."""

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a question, zeros where nothing is known; `EmbedderError` as above."""


def normalize_rows(matrix: FloatArray) -> FloatArray:
    """Scale every row to length 1; rows of zeros stay as they are."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: FloatArray = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled


def open_embedder(spec: str = STATIC, *, api_key: SecretStr | None = None, base_url: str | None = None) -> Embedder:
    """Build the embedder that `spec` names: `static`, or `provider:model` for a LangChain embedder.

    Without `api_key` a provider looks for its own environment variable. An unknown name, a missing package and a
    missing key are `EmbedderError`s that say what to do. Nothing is sent before the first text.
    """
    # Imported here because each costs something that the other does not need.
    if spec == STATIC:
        from indexer.static_embedder import StaticEmbedder

        return StaticEmbedder()
    from indexer.langchain_embedder import LangChainEmbedder

    return LangChainEmbedder.from_spec(spec, api_key=api_key, base_url=base_url)
