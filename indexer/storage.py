"""The data folder of one repository: its layout, its one writer, and sentences for what the file system says."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from indexer.complaints import format_path
from indexer.errors import DamagedCatalog, StorageError, StorageLocked, StorageUnwritable

_LAYOUT_SECONDS = 30.0
# What SQLite calls operational, and is none the less of a file that is not as it was written.
_DAMAGE = re.compile(r"malformed|no such (?:table|column)|has no column|unsupported file format|not a database")


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Where one repository's index is kept."""

    root: Path

    @property
    def catalog(self) -> Path:
        """The SQLite catalog."""
        return self.root / "catalog.sqlite"

    @property
    def attempt(self) -> Path:
        """Which commit is being indexed, and how often that has ended the process."""
        return self.root / "attempt.json"

    @property
    def vectors(self) -> Path:
        """Chroma's folder."""
        return self.root / "vectors"

    def snapshot(self, generation: int) -> Path:
        """The arrays of one generation."""
        return self.root / "generations" / str(generation)

    def snapshots(self) -> dict[str, Path]:
        """All folders of generations that are there, unfinished ones included, by name."""
        parent = self.root / "generations"
        return {path.name: path for path in parent.iterdir()} if parent.is_dir() else {}

    def size(self) -> int:
        """Bytes on disk; a file that several generations share counts once."""
        sizes: dict[tuple[int, int], int] = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                with suppress(FileNotFoundError):  # another process may be writing, and sweeping, meanwhile
                    found = Path(folder, name).stat()
                    sizes[found.st_dev, found.st_ino] = found.st_size
        return sum(sizes.values())

    @contextmanager
    def sole_writer(self) -> Iterator[None]:
        """Hold the folder for writing; `StorageLocked` at once if another process does."""
        with map_storage_errors(self.catalog):
            self.root.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / "writer.lock", timeout=0)
            try:
                lock.acquire()
            except Timeout as error:
                raise StorageLocked(
                    f"Another citebot is indexing this repository (it holds {self.root / 'writer.lock'}). "
                    "Wait until it has finished and try again; questions are answered meanwhile."
                ) from error
        try:
            yield
        finally:
            lock.release()

    def remove_index(self) -> None:
        """Delete what is made anew where the catalog is damaged; vectors are kept, which belong to contents."""
        with map_storage_errors(self.catalog):
            for path in self.root.glob(f"{self.catalog.stem}.*"):
                if path.suffix != ".lock":
                    path.unlink(missing_ok=True)
        self.remove(self.root / "generations")

    def remove(self, folder: Path) -> None:
        """Delete a folder below the root; what is gone already is no error."""
        with map_storage_errors(self.catalog):
            shutil.rmtree(folder, ignore_errors=not folder.exists())


def make_utf8_folder(home: Path) -> Path:
    """Return a data folder whose name the vector store can take; `StorageUnwritable` for any other."""
    try:
        os.fsencode(home).decode()
    except UnicodeDecodeError as error:
        raise StorageUnwritable(
            f"The name of the data folder {format_path(home)} is not UTF-8, which the vector store needs. "
            "Set CITEBOT_HOME to another folder."
        ) from error
    return home


@contextmanager
def lock_schema(database: Path) -> Iterator[None]:
    """Wait until no other process lays the database out: SQLite itself does not wait when it turns to its WAL."""
    with FileLock(database.with_suffix(".lock"), timeout=_LAYOUT_SECONDS):
        yield


@contextmanager
def map_storage_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say about a data folder into sentences."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _storage_error(path, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise make_damaged_catalog_error(path, str(error)) from error
    except OSError as error:
        raise _folder_error(path.parent, error) from error


def _folder_error(folder: Path, error: OSError) -> StorageUnwritable:
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return _unwritable(folder)
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return _full(folder)
    reason = error.strerror or error
    return StorageUnwritable(f"The data folder {folder} cannot be used: {reason}. Set CITEBOT_HOME to another folder.")


def _storage_error(path: Path, text: str) -> StorageError:
    if "locked" in text or "busy" in text:
        return StorageLocked(f"{path} is in use by another process. Wait until it has finished and try again.")
    if "full" in text:
        return _full(path.parent)
    if "disk I/O" in text:  # what SQLite says, for one, of a disk with no room for its shared memory
        return StorageUnwritable(f"{path} cannot be used ({text}). Make room on the disk or check it, then try again.")
    if "readonly" in text or "unable to open" in text:
        return _unwritable(path.parent)
    if _DAMAGE.search(text):
        return make_damaged_catalog_error(path, text)
    return StorageError(f"{path} cannot be read ({text}). Delete the folder {path.parent} and index again.")


def make_damaged_catalog_error(path: Path, reason: str) -> DamagedCatalog:
    """Say that a catalog is not what was written."""
    return DamagedCatalog(f"{path} is damaged ({reason}). The index is built again, from the repository.")


def _full(folder: Path) -> StorageUnwritable:
    return StorageUnwritable(f"The disk that holds {folder} is full. Free some room and try again.")


def _unwritable(folder: Path) -> StorageUnwritable:
    return StorageUnwritable(
        f"The data folder {folder} cannot be written to. Make it writable or set CITEBOT_HOME to another."
    )
