"""A published generation on this disk, opened with the usual readers."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import SecretStr

from indexer.embedding.embedder import Embedder
from indexer.embedding.factory import open_embedder
from indexer.errors import DamagedCatalog, IndexDamaged, NotIndexed, RepositoryError, StorageVersion
from indexer.generations.generation_cache import GenerationCache
from indexer.generations.history_reader import DeployMarks, HistoryReader
from indexer.generations.reader import IndexReader
from indexer.git.repository import Repository
from indexer.search.ranking import Fusion, RankingWeights
from indexer.search.snapshot import Snapshot
from indexer.segments.publisher import GIT_FOLDER
from indexer.store.catalog import Catalog
from indexer.store.data_folder import DataFolder, map_storage_errors
from indexer.store.file_locks import lock_file
from indexer.store.fingerprint import FORMAT, is_readable_fingerprint

if TYPE_CHECKING:
    from indexer.store.vectors import ChromaCollection

LOCK = "in-use.lock"


@dataclass(frozen=True, kw_only=True)
class ReadingParts:
    """The other readers of a repository. Without a vector store all vectors are compared, however many."""

    name: str
    web_url: str | None
    embedder: Embedder
    recipe: RankingWeights
    open_store: Callable[[], ChromaCollection] | None = None
    read_marks: DeployMarks | None = None

    @classmethod
    def open(
        cls, *, embedder: str, fusion: Fusion = "score", api_key: SecretStr | None = None, base_url: str | None = None
    ) -> Self:
        """Open the embedder; repositories share it under different names and pages."""
        chosen = open_embedder(embedder, api_key=api_key, base_url=base_url)
        return cls(name="", web_url=None, embedder=chosen, recipe=RankingWeights(fusion=fusion))


class OpenedGeneration:
    """Files of one generation. It holds a shared lock on its folder, so that no process deletes it meanwhile."""

    def __init__(self, folder: Path, lock: int, repository: Repository, catalog: Catalog) -> None:
        if (generation := catalog.current()) is None:
            raise ValueError("it has no generation")
        self.folder = folder
        self.generation = generation
        self.repository = repository
        self.catalog = catalog
        files = DataFolder(folder).snapshot(generation.id)
        self._lock = lock
        self._snapshot = Snapshot.load(files)
        self._snapshot.warm()
        self._contents = GenerationCache(catalog, generation.id)
        self._readers: weakref.WeakSet[IndexReader] = weakref.WeakSet()

    @classmethod
    def open(cls, folder: Path, parts: ReadingParts) -> OpenedGeneration:
        """Open a folder; it blocks.

        Raises `IndexDamaged` if its files have changed, `NotIndexed` if this version cannot read
        them, and `StorageError`.
        """
        with map_storage_errors(folder / LOCK):
            lock = lock_file(folder / LOCK, shared=True)
        if lock is None:
            raise NotIndexed(f"{parts.name} was just evicted from this disk. Ask again.")
        with ExitStack() as stack:
            stack.callback(os.close, lock)
            try:
                catalog = Catalog(DataFolder(folder).catalog)
                stack.callback(catalog.close)
                repository = Repository.open(folder / GIT_FOLDER)
                repository.name, repository.web_url = parts.name, parts.web_url
                opened = cls(folder, lock, repository, catalog)
            except StorageVersion as error:
                raise make_version_error(parts.name) from error
            except (DamagedCatalog, RepositoryError, OSError, ValueError, KeyError, TypeError, MemoryError) as error:
                raise IndexDamaged(f"What was downloaded of {parts.name} is damaged ({error}).") from error
            stack.pop_all()
        return opened

    @property
    def is_damaged(self) -> bool:
        """Whether a reader met damage."""
        return self.catalog.is_damaged

    @property
    def is_read(self) -> bool:
        """Whether anybody still reads it."""
        return len(self._readers) > 0

    def make_reader(self, parts: ReadingParts) -> IndexReader:
        """Pin the generation for a turn."""
        reader = IndexReader(
            parts.name,
            parts.web_url,
            generation=self.generation,
            snapshot=self._snapshot,
            catalog=self.catalog,
            contents=self._contents,
            embedder=parts.embedder,
            open_store=parts.open_store,
            recipe=parts.recipe,
            past=HistoryReader(
                self.repository, self.generation.commit.sha, self._contents, read_marks=parts.read_marks
            ),
        )
        self._readers.add(reader)
        return reader

    def close(self) -> None:
        """Release the files."""
        self.catalog.close()
        self.repository.close()
        os.close(self._lock)


def check_provenance(provenance: str, parts: ReadingParts) -> None:
    """Raise `NotIndexed` if this process cannot read a generation made so, or compares other vectors."""
    if not is_readable_fingerprint(provenance):
        raise make_version_error(parts.name)
    if not provenance.startswith(f"{FORMAT}/{parts.embedder.name}/"):
        raise NotIndexed(
            f"{parts.name} was indexed with another embedder than {parts.embedder.name}. Set CITEBOT_EMBEDDER to the "
            "same for all processes."
        )


def make_version_error(repository: str) -> NotIndexed:
    """Make the error for a repository published by another version."""
    return NotIndexed(
        f"{repository} was published by another version of citebot, whose index this one cannot read. The local copy "
        "is still served; run the same version everywhere."
    )
