"""Opens an embedder by name: the bundled static one, or one of LangChain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from indexer.embedding.static_name import MODEL_FOLDER, STATIC, read_static_name

if TYPE_CHECKING:
    from pydantic import SecretStr

    from indexer.embedding.embedder import Embedder, EmbeddingInput, FloatArray
    from indexer.embedding.static_embedder import StaticEmbedder


class BundledEmbedder:
    """The bundled embedder, opened at its first use: commands that embed nothing need only its name."""

    @cached_property
    def _embedder(self) -> StaticEmbedder:
        from indexer.embedding.static_embedder import StaticEmbedder

        return StaticEmbedder()

    @cached_property
    def name(self) -> str:
        """The name of `StaticEmbedder`."""
        return read_static_name(MODEL_FOLDER)

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._embedder.dimensions

    def embed_documents(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        """Embed documents by `StaticEmbedder`."""
        return self._embedder.embed_documents(inputs)

    def embed_query(self, text: str) -> FloatArray:
        """Embed a question by `StaticEmbedder`."""
        return self._embedder.embed_query(text)


def open_embedder(spec: str = STATIC, *, api_key: SecretStr | None = None, base_url: str | None = None) -> Embedder:
    """Build the embedder that `spec` names: `static`, or `provider:model` for a LangChain embedder.

    Without `api_key` a provider looks for its own environment variable. An unknown name, a missing package and a
    missing key are `EmbedderError`s that say what to do. Nothing is sent before the first text.
    """
    if spec == STATIC:
        return BundledEmbedder()
    from indexer.embedding.langchain_embedder import LangChainEmbedder

    return LangChainEmbedder.from_spec(spec, api_key=api_key, base_url=base_url)
