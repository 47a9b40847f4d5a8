"""Builds the embedders of LangChain's packages from their names, arguments and keys."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from indexer.embedding.static_name import STATIC
from indexer.errors import EmbedderError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from pydantic import SecretStr

SHORT = 256  # numbers a vector, of models that can be asked for fewer than they have


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingProvider:
    """The names that a LangChain package uses; an empty name means that it has no such thing.

    `shortens` are models, by the start of their names, that return fewer numbers when asked to.
    """

    package: str
    class_name: str
    key_variable: str = ""
    url_argument: str = "base_url"
    size_argument: str = ""
    shortens: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def size(self, model: str) -> int | None:
        """The length of a vector that the model is asked for; None if it decides."""
        return SHORT if self.shortens and model.startswith(self.shortens) else None


# Gemini's class sends the task type (RETRIEVAL_DOCUMENT, RETRIEVAL_QUERY) on its own.
PROVIDERS: Mapping[str, EmbeddingProvider] = {
    "google_genai": EmbeddingProvider(
        package="langchain_google_genai",
        class_name="GoogleGenerativeAIEmbeddings",
        key_variable="GOOGLE_API_KEY",
        size_argument="output_dimensionality",
        shortens=("gemini-embedding", "models/gemini-embedding"),
        # It goes by two libraries, which would take the key along to wherever they are redirected.
        options={"vertexai": False, "client_args": {"follow_redirects": False, "allow_redirects": False}},
    ),
    "mistralai": EmbeddingProvider(
        package="langchain_mistralai",
        class_name="MistralAIEmbeddings",
        key_variable="MISTRAL_API_KEY",
        url_argument="endpoint",
    ),
    "ollama": EmbeddingProvider(package="langchain_ollama", class_name="OllamaEmbeddings"),
    "openai": EmbeddingProvider(
        package="langchain_openai",
        class_name="OpenAIEmbeddings",
        key_variable="OPENAI_API_KEY",
        size_argument="dimensions",
        shortens=("text-embedding-3",),
        options={"max_retries": 0},  # the embedder above tries again itself
    ),
}


def find_provider(spec: str) -> tuple[EmbeddingProvider, str]:
    """Split `provider:model`; `EmbedderError` lists what is possible."""
    name, _, model = spec.partition(":")
    if name not in PROVIDERS or not model:
        possible = ", ".join([STATIC, *(f"{each}:MODEL" for each in PROVIDERS)])
        message = f"There is no embedder {spec!r}. Possible are {possible}."
        raise EmbedderError(message)
    return PROVIDERS[name], model


def build_embeddings(
    provider: EmbeddingProvider, model: str, *, api_key: SecretStr | None, base_url: str | None
) -> Embeddings:
    """Build the package's embedder; `EmbedderError` if the package or the key is missing."""
    arguments: dict[str, Any] = {"model": model, **provider.options}
    if size := provider.size(model):
        arguments[provider.size_argument] = size
    if api_key is not None and provider.key_variable:
        arguments["api_key"] = api_key
    if base_url is not None:
        arguments[provider.url_argument] = base_url
    embeddings: Embeddings = _construct(provider, arguments)
    return embeddings


def _construct(provider: EmbeddingProvider, arguments: Mapping[str, Any]) -> Any:
    try:
        module = importlib.import_module(provider.package)
    except ImportError as error:
        package = provider.package.replace("_", "-")
        missing = EmbedderError(f"This embedder needs the package {package}, which is not installed.")
        missing.package = package
        raise missing from error
    try:
        return getattr(module, provider.class_name)(**arguments)
    except Exception as error:  # noqa: BLE001  (the packages share no base class for what is wrong with an argument)
        needed = f" It needs the environment variable {provider.key_variable}." if provider.key_variable else ""
        message = f"{provider.class_name} could not be set up ({type(error).__name__}).{needed}"
        # Not `from error`: pydantic repeats the arguments in its text.
        raise EmbedderError(message) from None
