"""The folder of one generation that is next to a repository's own index: held while it is read, deleted while not."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from indexer.store.data_folder import DataFolder, map_storage_errors
from indexer.types import NamedRef, RefKind

_PARENT = "refs"  # in the folder of the repository's index
_LOCK = "held.lock"
_NOTE = "ref.json"
_GONE = ".gone-"
_NAME = re.compile(r"([0-9a-f]{40,64})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class SideFolder:
    """Where a generation of one commit is kept; what it was made with is a part of its name."""

    root: Path

    @classmethod
    def of(cls, index: DataFolder, commit: str, provenance: str) -> SideFolder:
        """Return the folder for a commit beside an index."""
        made_with = hashlib.blake2b(provenance.encode(), digest_size=4).hexdigest()
        return cls(index.root / _PARENT / f"{commit}-{made_with}")

    @property
    def name(self) -> str:
        """The commit, and what the generation was made with."""
        return self.root.name

    @property
    def commit(self) -> str:
        """The commit that is indexed."""
        return self.root.name.partition("-")[0]

    @property
    def data(self) -> DataFolder:
        """The index itself."""
        return DataFolder(self.root)

    @property
    def is_complete(self) -> bool:
        """Whether the generation was built to its end."""
        return (self.root / _NOTE).is_file()

    @property
    def used_at(self) -> float:
        """When it was last asked for, in seconds since the epoch; 0 if that is not known."""
        try:
            return (self.root / _LOCK).stat().st_mtime
        except OSError:
            return 0.0

    def note(self, ref: NamedRef) -> None:
        """Note that the generation is complete, and as what it was asked for."""
        with map_storage_errors(self.root / _NOTE):
            draft = self.root / f"{_NOTE}.unfinished"
            draft.write_text(json.dumps({"kind": ref.kind, "name": ref.name}), encoding="utf-8")
            draft.replace(self.root / _NOTE)

    def read_kind(self) -> RefKind | None:
        """Return as what it was asked for; None if that is not known."""
        try:
            kind = json.loads((self.root / _NOTE).read_text(encoding="utf-8"))["kind"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return kind if kind in get_args(RefKind) else None

    def hold(self) -> int:
        """Hold the folder, which is made if it is missing, against deletion; return a descriptor to close later."""
        with map_storage_errors(self.root / _LOCK):
            while True:
                self.root.mkdir(parents=True, exist_ok=True)
                lock = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(lock, fcntl.LOCK_SH)
                if _is_same(lock, self.root / _LOCK):  # else it was deleted meanwhile
                    os.utime(lock)
                    return lock
                os.close(lock)

    def touch(self) -> None:
        """Note that it was asked for again."""
        with map_storage_errors(self.root / _LOCK):
            os.utime(self.root / _LOCK)

    def remove(self) -> bool:
        """Delete the folder, unless somebody holds it."""
        with map_storage_errors(self.root / _LOCK):
            lock = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                gone = self.root.with_name(f"{_GONE}{uuid.uuid4().hex}")
                self.root.rename(gone)
            except BlockingIOError:
                return False
            finally:
                os.close(lock)
            shutil.rmtree(gone, ignore_errors=True)
        return True


def list_side_folders(index: DataFolder) -> list[SideFolder]:
    """List the folders of side generations, the last used first, and delete leftovers of killed processes."""
    parent = index.root / _PARENT
    found = [path for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    for path in found:
        if path.name.startswith(_GONE):
            shutil.rmtree(path, ignore_errors=True)
    folders = [SideFolder(path) for path in found if _NAME.fullmatch(path.name)]
    return sorted(folders, key=lambda folder: -folder.used_at)


@contextmanager
def lock_building(index: DataFolder) -> Iterator[bool]:
    """Try to be the only process that builds beside an index; False if another one does."""
    path = index.root / _PARENT / "building.lock"
    with map_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
