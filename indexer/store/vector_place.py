"""Locates the vectors of one repository: in Chroma's folder of its index, or in a collection on a server."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.store.chroma_client import find_checksums
from indexer.store.data_folder import REPOSITORIES_FOLDER, DataFolder, map_storage_errors

if TYPE_CHECKING:
    from indexer.embedding.embedder import Embedder
    from indexer.store.vectors import ChromaCollection

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """The place of a repository's vectors; `server` is the address of a Chroma server, None for the folder."""

    folder: DataFolder
    server: str | None = None

    def open(self, embedder: Embedder) -> ChromaCollection:
        """Open the vectors of an embedder; raises as `ChromaVectors` and `ServerVectors` do."""
        digest = hashlib.blake2b(embedder.name.encode(), digest_size=8).hexdigest()
        if self.server is None:
            from indexer.store.vectors import ChromaVectors

            return ChromaVectors(self.folder.vectors, f"vectors-{digest}", embedder.dimensions)
        from indexer.store.chroma_server import ServerVectors

        return ServerVectors(self.server, self._name_collections() + digest, embedder.dimensions)

    def is_intact(self) -> bool:
        """Whether the vectors are surely unchanged, as far as possible without opening them; not on a server."""
        if self.server is not None:
            return False
        return find_checksums(self.folder.vectors).match() is True

    def clear(self) -> None:
        """Delete the closed vectors of all embedders."""
        if self.server is None:
            self.folder.remove(self.folder.vectors)
            return
        from indexer.store.chroma_server import remove_collections

        remove_collections(self.server, self._name_collections())

    def _name_collections(self) -> str:
        """Return the prefix of the collections' names.

        Besides the name of the folder it contains the folder's id: other machines of the same server may have a
        repository at the same path, and must not sweep each other's collections.
        """
        with map_storage_errors(self.folder.collection_id):
            return f"citebot-{self.folder.root.name}-{_read_id(self.folder.collection_id)}-"


def remove_index(home: Path, name: str, server: str | None = None) -> None:
    """Delete an index and its vectors; raises `StorageLocked` while it is being written, and `VectorsUnavailable`."""
    folder = DataFolder(home / REPOSITORIES_FOLDER / name)
    with folder.hold_as_writer():
        if folder.collection_id.is_file():
            VectorPlace(folder, server).clear()
        folder.remove(folder.root)


def _read_id(path: Path) -> str:
    """Read the id of a folder, or create it."""
    if path.is_file() and _ID.fullmatch(known := path.read_text(encoding="ascii", errors="replace")):
        return known
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(secrets.token_hex(8), encoding="ascii")
    return unfinished.replace(path).read_text(encoding="ascii")
