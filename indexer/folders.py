"""The folders of all indexes below one data folder: whose each is, how large, and how one is removed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer.repository import Repository
from indexer.storage import DataFolder

REPOSITORIES = "repositories"  # in the data folder


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexFolder:
    """The folder of one index, by name, and its bytes on disk."""

    name: str
    size: int


def list_index_folders(home: Path) -> Sequence[IndexFolder]:
    """List the indexes of a data folder, by name."""
    parent = home / REPOSITORIES
    folders = sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []
    return [IndexFolder(name=path.name, size=DataFolder(path).size()) for path in folders]


def name_index_folder(repository: Repository) -> str:
    """Name the folder of a repository's index: the name is for people, the rest tells the repository's place."""
    place = hashlib.blake2b(str(repository.git_dir).encode(errors="surrogateescape"), digest_size=6).hexdigest()
    name = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in repository.name)
    return f"{name.lstrip('.')[:60] or 'repository'}-{place}"


def find_index_folder(path: Path) -> str:
    """Name the folder of the repository that a path lies in; raises `RepositoryError` where there is none."""
    with Repository.open(path) as repository:
        return name_index_folder(repository)


def remove_index(home: Path, name: str) -> None:
    """Delete an index; `StorageLocked` while it is being written."""
    folder = DataFolder(home / REPOSITORIES / name)
    with folder.sole_writer():
        folder.remove(folder.root)
