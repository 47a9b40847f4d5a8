"""A LangChain embedder: parallel batches, with the time limits and retries that LangChain lacks."""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from indexer.embedding.embedder import EmbeddingInput, FloatArray, normalize_rows
from indexer.embedding.static_name import STATIC
from indexer.errors import EmbedderError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from pydantic import SecretStr

SHORT = 256  # numbers a vector, of models that can be asked for fewer than they have


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingProvider:
    """The names in a LangChain package; an empty one means that the package has none.

    `shortens` are models, by prefix, that return fewer numbers on request.
    """

    package: str
    class_name: str
    key_variable: str = ""
    url_argument: str = "base_url"
    size_argument: str = ""
    shortens: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def size(self, model: str) -> int | None:
        """The requested length of a vector; None if the model decides."""
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
    """Split `provider:model`; `EmbedderError` lists the providers."""
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


T = TypeVar("T")

_BATCH = 100  # texts a call; Gemini takes no more
_PERMANENT = frozenset({400, 401, 403, 404, 422})  # statuses that another try does not change


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedderRetryPolicy:
    """The timeout of a call, the number of tries, and the calls in progress.

    Between tries it waits `backoff` seconds, twice as long each time. A person waits for a question's vector, so that
    is tried twice at most.
    """

    batch_seconds: float = 60.0
    query_seconds: float = 10.0
    attempts: int = 4
    backoff: float = 1.0
    concurrency: int = 4


class LangChainEmbedder:
    """Embeds through a LangChain `Embeddings`; without `dimensions`, the model is asked."""

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str,
        dimensions: int | None = None,
        key_variable: str = "",
        patience: EmbedderRetryPolicy | None = None,
    ) -> None:
        self._embeddings = embeddings
        self._name = name
        self._dimensions = dimensions
        self._key_variable = key_variable
        self._patience = patience or EmbedderRetryPolicy()

    @classmethod
    def from_spec(
        cls,
        spec: str,
        *,
        api_key: SecretStr | None = None,
        base_url: str | None = None,
        patience: EmbedderRetryPolicy | None = None,
    ) -> LangChainEmbedder:
        """Build the embedder of `provider:model`; `EmbedderError` says what is missing."""
        provider, model = find_provider(spec)
        size = provider.size(model)
        return cls(
            build_embeddings(provider, model, api_key=api_key, base_url=base_url),
            name=f"{spec}:{size}" if size else spec,
            dimensions=size,
            key_variable=provider.key_variable,
            patience=patience,
        )

    @property
    def name(self) -> str:
        """Provider, model and, if chosen, the length of a vector."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of a vector; the first call may ask the model."""
        if self._dimensions is None:
            self._dimensions = len(self._ask_query("dimensions"))
        return self._dimensions

    def embed_documents(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        """Return one unit row for each input, zeros for blank ones; a batch that fails for good fails the call."""
        texts = [f"{item.header}\n{item.body}".strip() for item in inputs]
        filled = [row for row, text in enumerate(texts) if text]
        batches = [[texts[row] for row in filled[start : start + _BATCH]] for start in range(0, len(filled), _BATCH)]
        vectors = [vector for batch in self._ask_batches(batches) for vector in batch]
        matrix = np.zeros((len(texts), self.dimensions), np.float32)
        matrix[filled] = self._check_vectors(vectors, len(filled))
        return normalize_rows(matrix)

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a question, zeros when it is blank."""
        vectors = [self._ask_query(text)] if text.strip() else [[0.0] * self.dimensions]
        row: FloatArray = normalize_rows(self._check_vectors(vectors, 1))[0]
        return row

    def _ask_batches(self, batches: Sequence[list[str]]) -> Iterator[list[list[float]]]:
        """Request the vectors of several batches in parallel."""
        limits = self._patience

        def ask(texts: list[str]) -> list[list[float]]:
            return self._persist(lambda: self._embeddings.embed_documents(texts), limits.batch_seconds, limits.attempts)

        pool = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="embed")
        try:
            yield from pool.map(ask, batches)
        finally:
            pool.shutdown(cancel_futures=True)

    def _ask_query(self, text: str) -> list[float]:
        limits = self._patience
        return self._persist(lambda: self._embeddings.embed_query(text), limits.query_seconds, min(2, limits.attempts))

    def _persist(self, call: Callable[[], T], seconds: float, attempts: int) -> T:
        """Make the call until it is answered; `EmbedderError` if it fails for good."""
        attempt = 1
        while True:
            outcome = _start_call(call)
            try:
                error = outcome.exception(timeout=seconds)
            except TimeoutError as late:
                error = late
            if error is None:
                return outcome.result()
            if attempt >= attempts or _find_status(error) in _PERMANENT:
                # Some services repeat the key in their refusal, so that one is not chained.
                raise EmbedderError(self._describe_failure(error, attempt)) from (
                    None if _is_key_refused(error) else error
                )
            time.sleep(self._patience.backoff * 2 ** (attempt - 1) * random.uniform(1.0, 1.25))  # noqa: S311
            attempt += 1

    def _describe_failure(self, error: BaseException, attempts: int) -> str:
        if _is_key_refused(error):
            variable = f"the environment variable {self._key_variable}" if self._key_variable else "it"
            return f"The embedder {self._name} refused the API key; set {variable} to a valid one."
        status = _find_status(error)
        if isinstance(error, TimeoutError):
            reason = "did not answer in time"
        elif status == 404:
            reason = "does not exist (status 404), check the model's name"
        elif status is not None:
            reason = f"answered with an error (status {status})"
        else:
            reason = f"did not answer ({type([*_walk_causes(error)][-1]).__name__})"
        return f"The embedder {self._name} {reason}; tried {attempts} time{'s' if attempts > 1 else ''}."

    def _check_vectors(self, vectors: Sequence[Sequence[float]], rows: int) -> FloatArray:
        """Return the answer as a matrix, after checking its shape."""
        if len(vectors) != rows or any(len(vector) != self.dimensions for vector in vectors):
            lengths = sorted({len(vector) for vector in vectors})
            message = (
                f"The embedder {self._name} answered {rows} texts with {len(vectors)} vectors of {lengths} numbers, "
                f"where {self.dimensions} numbers were expected."
            )
            raise EmbedderError(message)
        return np.array(vectors, dtype=np.float32).reshape(rows, self.dimensions)


def _start_call(call: Callable[[], T]) -> Future[T]:
    """Make the call in a separate thread, so that a hanging call cannot keep the process alive."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001  (handed to anyone who waits for the outcome)
            outcome.set_exception(error)

    Thread(target=run, name="embed-call", daemon=True).start()
    return outcome


def _walk_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes; LangChain wraps the errors of the services' clients."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _find_status(error: BaseException) -> int | None:
    """Return the HTTP status under an error; each client keeps it under one of two names."""
    for each in _walk_causes(error):
        for attribute in ("status_code", "code"):
            if isinstance(status := getattr(each, attribute, None), int):
                return status
    return None


def _is_key_refused(error: BaseException) -> bool:
    """Whether a key was refused; Gemini answers an invalid one with 400 and a reason."""
    status = _find_status(error)
    if status == 400:
        return any("API_KEY_INVALID" in str(each) or "API key" in str(each) for each in _walk_causes(error))
    return status in {401, 403}
