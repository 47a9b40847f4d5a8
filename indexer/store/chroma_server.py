"""Keeps unit vectors in collections of a Chroma server, which repositories and machines may share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from indexer.errors import DamagedVectors, StorageError, StorageUnwritable, VectorsUnavailable
from indexer.store.chroma_client import close_client, open_server_client
from indexer.store.vectors import ChromaCollection

if TYPE_CHECKING:
    from chromadb.api.client import Client

_MAJOR = "1"  # of Chroma, whose servers of one major version speak the same language
_PROBE_SECONDS = 5.0
_LISTED = 500  # collections of one request
_LONGEST_REASON = 200  # characters

# Chroma distinguishes faults only in its text.
_FULL = re.compile(r"readonly database|read-only file system|is full|no space left|disk i/o error", re.IGNORECASE)
# Its messages about unreadable files; other failures of a server may pass.
_DAMAGED = re.compile(
    r"loading hnsw index|getting embedding|deserializing|malformed|not a database|corrupt|checksum|found on disk",
    re.IGNORECASE,
)


class ServerVectors(ChromaCollection):
    """Vectors in a collection of a Chroma server.

    Opening asks the server for its version, and reads one vector back: `DamagedVectors` where the server says that it
    cannot read its files, so that the caller can remove the collection and fill it again. `VectorsUnavailable` if
    there is no such server, or it fails otherwise, and `StorageUnwritable` where its disk is full. Every method may
    raise the three. One process writes to a collection at a time.
    """

    def __init__(self, url: str, collection: str, dimensions: int) -> None:
        self._url = url
        check_chroma_server(url)
        with map_server_errors(url):
            client = open_server_client(url)
        super().__init__(client, collection, dimensions)

    def _describe_place(self) -> str:
        return f"the Chroma server at {self._url}"

    def _map_errors(self) -> AbstractContextManager[None]:
        return map_server_errors(self._url)


def check_chroma_server(url: str) -> str:
    """Return the version of a Chroma server; `VectorsUnavailable` if none can be used."""
    from httpx import HTTPError, InvalidURL, get

    try:
        answer = get(f"{url.rstrip('/')}/api/v2/version", timeout=_PROBE_SECONDS)
        version = answer.json() if answer.is_success else None
    except (HTTPError, InvalidURL) as error:
        raise _make_unavailable_error(url, error) from error
    except ValueError:  # it is not JSON
        version = None
    if not isinstance(version, str):
        raise VectorsUnavailable(
            f"The server at {url} (status {answer.status_code}) is not a Chroma server of version {_MAJOR}. "
            "Correct CHROMA_URL, or start one with `chroma run`."
        )
    if version.partition(".")[0] != _MAJOR:
        raise VectorsUnavailable(
            f"The Chroma server at {url} has version {version[:20]!r}. Run one of version {_MAJOR} there."
        )
    return version


def remove_collections(url: str, prefix: str) -> None:
    """Delete the collections of a server with a name prefix; raises as `ServerVectors` does."""
    check_chroma_server(url)
    with map_server_errors(url):
        client = open_server_client(url)
        try:
            for name in _list_collections(client):
                if name.startswith(prefix):
                    client.delete_collection(name)
        finally:
            close_client(client)


def _list_collections(client: Client) -> Sequence[str]:
    names: list[str] = []
    while page := client.list_collections(limit=_LISTED, offset=len(names)):
        names += [each.name for each in page]
    return names


@contextmanager
def map_server_errors(url: str) -> Iterator[None]:
    """Map errors of Chroma's client and the network to this package's errors."""
    try:
        yield
    except Exception as error:
        if not _is_server_fault(error):
            raise
        raise _make_server_error(url, error) from error


def _is_server_fault(error: Exception) -> bool:
    """Tell faults of the server from mistakes of the caller; for an unknown answer, Chroma raises a bare
    `Exception`, and a `ValueError` for one that is not JSON.
    """
    from chromadb.errors import ChromaError
    from httpx import HTTPError

    return isinstance(error, ChromaError | HTTPError | OSError | ValueError) or type(error) is Exception


def _make_server_error(url: str, error: Exception) -> StorageError:
    from chromadb.errors import InternalError, InvalidDimensionException, NotFoundError

    text = str(error)
    if _FULL.search(text):
        return StorageUnwritable(
            f"The Chroma server at {url} cannot write: make room on its disk or check its permissions. "
            f"({_shorten(text)})"
        )
    is_damage = isinstance(error, InternalError) and _DAMAGED.search(text)
    if is_damage or isinstance(error, InvalidDimensionException | NotFoundError):
        return DamagedVectors(
            f"The vectors in the Chroma server at {url} cannot be read and must be rebuilt. ({_shorten(text)})"
        )
    return _make_unavailable_error(url, error)


def _make_unavailable_error(url: str, error: Exception) -> VectorsUnavailable:
    reason = _shorten(str(error)) or type(error).__name__
    return VectorsUnavailable(
        f"The Chroma server at {url} cannot be used ({reason}). Check that it runs and can be reached, and CHROMA_URL."
    )


def _shorten(text: str) -> str:
    """Shorten a server's message to one line for use in a sentence."""
    return " ".join(text[: 2 * _LONGEST_REASON].split())[:_LONGEST_REASON]
