"""Opens the embedder that a name stands for: the bundled static one, or one of LangChain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.embedding.embedder import STATIC, Embedder

if TYPE_CHECKING:
    from pydantic import SecretStr


def open_embedder(spec: str = STATIC, *, api_key: SecretStr | None = None, base_url: str | None = None) -> Embedder:
    """Build the embedder that `spec` names: `static`, or `provider:model` for a LangChain embedder.

    Without `api_key` a provider looks for its own environment variable. An unknown name, a missing package and a
    missing key are `EmbedderError`s that say what to do. Nothing is sent before the first text.
    """
    # Imported here because each costs something that the other does not need.
    if spec == STATIC:
        from indexer.embedding.static_embedder import StaticEmbedder

        return StaticEmbedder()
    from indexer.embedding.langchain_embedder import LangChainEmbedder

    return LangChainEmbedder.from_spec(spec, api_key=api_key, base_url=base_url)
