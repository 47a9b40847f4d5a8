"""Keeps unit vectors by key in collections of Chroma, and those in a folder."""

from __future__ import annotations

import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.errors import DamagedVectors, MissingVectors, StorageError, StorageLocked, StorageUnwritable
from indexer.store.chroma_client import close_client, find_checksums, open_folder_client

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection

FloatArray = NDArray[np.float32]
T = TypeVar("T")

_WRITE_BATCHES = (32, 512)  # the smallest and the largest
_STANDSTILL = 0.2  # seconds
_FEW_UNWRITTEN = 1000  # vectors that Chroma's index lacks on disk
_UNWRITTEN_SHARE = 8  # of all vectors, one in so many
_READ_BATCH = 1000
_LOOKUP_BATCH = 5000  # SQLite takes 32,766 variables

_MIN_FREE = 4 * 2**20  # bytes

_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_construction": 100, "max_neighbors": 32, "ef_search": 200}

# Chroma distinguishes faults only in its text.
_UNWRITABLE = re.compile(
    r"readonly database|read-only file system|permission denied|is full|no space left|unable to open|disk i/o error",
    re.IGNORECASE,
)
_LOCKED = re.compile(r"database (table )?is locked", re.IGNORECASE)


class BatchSize:
    """The number of vectors in one call of Chroma, which holds the interpreter lock while it runs.

    That blocks the event loop, so a batch has as many as can be stored in a fifth of a second: fewer in a larger
    collection, although larger batches take somewhat less time per vector.
    """

    def __init__(self, most: int) -> None:
        self._least, self._most = (min(size, most) for size in _WRITE_BATCHES)
        self.size = min(4 * self._least, self._most)

    def adjust_size(self, seconds: float) -> None:
        """Adjust the size to the duration of the last batch."""
        if seconds > _STANDSTILL:
            self.size = max(self.size // 2, self._least)
        elif seconds < _STANDSTILL / 3:
            self.size = min(self.size * 2, self._most)


class ChromaCollection(ABC):
    """Unit vectors of one length by key in a collection of Chroma, searched by its index (98 of 100 neighbours found).

    Its methods block, and may be called from several threads at once.
    """

    def __init__(self, client: Client, name: str, dimensions: int) -> None:
        self._client = client
        self._name = name
        self._dimensions = dimensions
        try:
            self._collection = self._open_collection()
            self._batch = BatchSize(client.get_max_batch_size())
        except BaseException:
            close_client(client)
            raise

    def find_missing(self, keys: Sequence[str]) -> set[str]:
        """Return the keys without a vector."""
        wanted = set(keys)
        with self._map_errors():
            for batch in _split_batches(list(wanted), _LOOKUP_BATCH):
                wanted.difference_update(self._collection.get(ids=batch, include=[])["ids"])
        return wanted

    def add(self, keys: Sequence[str], vectors: FloatArray) -> None:
        """Store a unit (or zero) row for each key, in place of what the key had; of a repeated key the last row.

        A batch that was stored stays if a later one fails.
        """
        if vectors.shape != (len(keys), self._dimensions):
            shape = (len(keys), self._dimensions)
            message = f"{len(keys)} keys need vectors of shape {shape}, not {vectors.shape}."
            raise ValueError(message)
        last = {key: row for row, key in enumerate(keys)}  # Chroma refuses a key twice in a call
        waiting = list(last)
        with self._track_changes():
            while batch := waiting[: self._batch.size]:
                began = time.perf_counter()
                self._collection.upsert(ids=batch, embeddings=vectors[[last[key] for key in batch]])
                self._batch.adjust_size(time.perf_counter() - began)
                del waiting[: len(batch)]

    def settle(self) -> None:  # noqa: B027 - a server sees to that itself
        """Prepare added vectors for fast reading by the next opener; call it after many additions."""

    def get(self, keys: Sequence[str]) -> FloatArray:
        """Return the rows in the order of the keys, some 30,000 a second; `MissingVectors` if one has none."""
        rows: dict[str, FloatArray] = {}
        with self._map_errors():
            for batch in _split_batches(list(dict.fromkeys(keys)), _READ_BATCH):
                answer: Any = self._collection.get(ids=batch, include=["embeddings"])
                rows.update(zip(answer["ids"], np.asarray(answer["embeddings"], dtype=np.float32), strict=True))
        if absent := [key for key in keys if key not in rows]:
            message = f"{len(absent)} of {len(keys)} keys have no vector, {absent[0]!r} among them."
            raise MissingVectors(message)
        return np.array([rows[key] for key in keys], dtype=np.float32).reshape(len(keys), self._dimensions)

    def remove(self, keys: Sequence[str]) -> None:
        """Delete the vectors of the keys, of which some may have none; files do not shrink, but space is reused."""
        with self._track_changes():
            for batch in _split_batches(list(dict.fromkeys(keys)), self._batch.size):
                self._collection.delete(ids=batch)

    def find_nearest(self, query: FloatArray, k: int) -> list[tuple[str, float]]:
        """Return up to `k` keys with their cosine to the query, best first; approximate."""
        if k < 1:
            return []
        with self._map_errors():
            answer: Any = self._collection.query(query_embeddings=query[None, :], n_results=k, include=["distances"])
        return [(key, 1 - distance) for key, distance in zip(answer["ids"][0], answer["distances"][0], strict=True)]

    def count(self) -> int:
        """Return the number of keys."""
        with self._map_errors():
            return self._collection.count()

    def close(self) -> None:
        """Release files and connections; a second call does nothing."""
        close_client(self._client)

    def _open_collection(self) -> Collection:
        with self._map_errors():
            # Without `embedding_function=None` Chroma downloads a model of its own at the first use.
            collection = self._client.get_or_create_collection(
                self._name, embedding_function=None, configuration={"hnsw": _HNSW}
            )
            sample: Any = collection.get(limit=1, include=["embeddings"])["embeddings"] if collection.count() else None
        if sample is not None and np.shape(sample) != (1, self._dimensions):
            length = f"{self._dimensions} numbers long"
            message = f"The vectors in {self._describe_place()} are not {length}; they must be rebuilt."
            raise DamagedVectors(message)
        return collection

    @abstractmethod
    def _describe_place(self) -> str:
        """Describe the collection's place."""

    @abstractmethod
    def _map_errors(self) -> AbstractContextManager[None]:
        """Map the errors of Chroma and the libraries below it to this package's errors."""

    def _track_changes(self) -> AbstractContextManager[None]:
        """Surround each change with the place's work; maps errors as well."""
        return self._map_errors()


class ChromaVectors(ChromaCollection):
    """Vectors in a collection of a Chroma folder.

    Opening compares the files with their digests and reads one vector back, which loads the index. `DamagedVectors`
    means that either failed, so that the caller can delete the folder and fill it again. The digests come first,
    because a broken file would crash Chroma's index code. `StorageUnwritable` and `StorageLocked` as their names say.
    Every method may raise the three. One process writes to a folder at a time.

    Chroma rewrites its whole index after a number of new vectors, and replays the rest when it is opened. That number
    grows with the index, so the bytes written grow with the vectors, not with their square.
    """

    def __init__(self, folder: Path, collection: str, dimensions: int) -> None:
        self._folder = folder
        self._closed = False
        self._lock = RLock()  # nobody reads while the folder is opened again
        self._checksums = find_checksums(folder)
        with _map_chroma_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if self._checksums.match() is False:
                message = f"The files in {folder} were changed by another program; the vectors must be rebuilt."
                raise DamagedVectors(message)
            self._checksums.drop()  # opening alone changes the database
            client = open_folder_client(folder)
        super().__init__(client, collection, dimensions)
        hnsw: Any = self._collection.configuration_json.get("hnsw") or {}
        self._step: int = hnsw.get("sync_threshold") or _FEW_UNWRITTEN
        self._unwritten = 0

    def add(self, keys: Sequence[str], vectors: FloatArray) -> None:
        """Store a row for each key; a stored batch stays if a later one fails."""
        if self.count() >= 2 * _UNWRITTEN_SHARE * self._step:
            self._lengthen_step()
        super().add(keys, vectors)
        self._unwritten = (self._unwritten + len(set(keys))) % self._step

    def settle(self) -> None:
        """Make Chroma write its index if many vectors are missing on disk, by as many empty changes as that takes."""
        if self._unwritten > _FEW_UNWRITTEN:
            self.remove([f"nothing {place}" for place in range(self._step - self._unwritten)])
            self._unwritten = 0

    def _lengthen_step(self) -> None:
        """Make Chroma write its index less often from now on; it takes effect at the next opening."""
        self.settle()
        self._step = self.count() // _UNWRITTEN_SHARE
        with self._track_changes():
            # Their method of collections warns that there is no embedding function.
            server: Any = self._client._server  # noqa: SLF001
            configuration = {"hnsw": {"sync_threshold": self._step}}
            server._modify(id=self._collection.id, new_configuration=configuration)  # noqa: SLF001
            self._reopen()

    def close(self) -> None:
        """Release the files; Chroma's own threads let go of them within a moment."""
        if self._closed:
            return
        self._closed = True
        close_client(self._client)
        # Without digests the next opening trusts the files, so a full disk is no reason to fail here.
        with suppress(OSError):
            self._checksums.note()

    def _describe_place(self) -> str:
        return str(self._folder)

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        with self._lock, _map_chroma_errors(self._folder):
            yield

    @contextmanager
    def _track_changes(self) -> Iterator[None]:
        with self._map_errors():
            self._checksums.drop()  # of another process, which only read
            try:
                yield
            except BaseException as error:
                if _is_storage_fault(error):
                    self._reopen()
                raise

    def _reopen(self) -> None:
        """Replace the client: after a failed write, the next one may wait for its own lock forever."""
        close_client(self._client)
        self._client = open_folder_client(self._folder)
        self._collection = self._open_collection()


@contextmanager
def _map_chroma_errors(folder: Path) -> Iterator[None]:
    """Map errors of Chroma, its Rust core and the file system to this package's errors."""
    try:
        yield
    except BaseException as error:
        if not _is_storage_fault(error):
            raise
        raise _make_storage_error(folder, error) from error


def _is_storage_fault(error: BaseException) -> bool:
    """Tell faults of the store from mistakes of the caller; a panic of the Rust core is no `Exception` at all."""
    from chromadb.errors import ChromaError

    return isinstance(error, ChromaError | OSError) or type(error).__name__ == "PanicException"


def _make_storage_error(folder: Path, error: BaseException) -> StorageError:
    text = str(error)
    # Chroma's message about a full disk depends on the file that it was writing.
    is_full = folder.exists() and shutil.disk_usage(folder).free < _MIN_FREE
    if isinstance(error, OSError) or _UNWRITABLE.search(text) or is_full:
        return StorageUnwritable(
            f"{folder} cannot be written: make room on the disk or check its permissions. ({text})"
        )
    if _LOCKED.search(text):
        return StorageLocked(f"Another process is writing to {folder}; try again when it has finished.")
    return DamagedVectors(f"The vectors in {folder} cannot be read and must be rebuilt. ({text})")


def _split_batches(items: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
