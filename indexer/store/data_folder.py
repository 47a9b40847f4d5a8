"""The data folders of indexes: layout, writer's lock, copies while in use, sizes and removal."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import CommitSetAside, DamagedCatalog, StorageError, StorageLocked, StorageUnwritable
from indexer.git.git_command import format_path
from indexer.git.repository import Repository
from indexer.store.file_locks import lock_file

# Errors that SQLite calls operational although the file is damaged.
_DAMAGE = re.compile(r"malformed|no such (?:table|column)|has no column|unsupported file format|not a database")

REPOSITORIES_FOLDER = "repositories"  # in the data folder

_TRIES = 5  # a refresh may sweep what is being copied, but hardly that often
_CURRENT = "SELECT max(id) FROM generations WHERE retired_at IS NULL"


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder of one repository's index."""

    root: Path

    @property
    def catalog(self) -> Path:
        """The SQLite catalog."""
        return self.root / "catalog.sqlite"

    @property
    def attempt(self) -> Path:
        """The commit being indexed, and the number of processes that died of it."""
        return self.root / "attempt.json"

    @property
    def kept_parses(self) -> Path:
        """The files parsed by an unfinished refresh."""
        return self.root / "parsed.sqlite"

    @property
    def vectors(self) -> Path:
        """Chroma's folder."""
        return self.root / "vectors"

    @property
    def collection_id(self) -> Path:
        """The id of this folder's collections in a vector server, if there are any."""
        return self.root / "collection.id"

    def snapshot(self, generation: int) -> Path:
        """The arrays of one generation."""
        return self.root / "generations" / str(generation)

    def snapshots(self) -> dict[str, Path]:
        """Return all existing folders of generations, unfinished ones included, by name."""
        parent = self.root / "generations"
        return {path.name: path for path in parent.iterdir()} if parent.is_dir() else {}

    @contextmanager
    def hold_as_writer(self) -> Iterator[None]:
        """Lock the folder for writing; `StorageLocked` immediately if another process has it."""
        with map_storage_errors(self.catalog):
            self.root.mkdir(parents=True, exist_ok=True)
            lock = lock_file(self.root / "writer.lock")
        if lock is None:
            raise StorageLocked(
                f"Another citebot is indexing this repository (it holds {self.root / 'writer.lock'}). "
                "Wait until it has finished and try again; questions are answered meanwhile."
            )
        try:
            yield
        finally:
            os.close(lock)

    def remove_index(self) -> None:
        """Delete the rebuildable files of a damaged catalog, but not vectors, which depend only on contents."""
        with map_storage_errors(self.catalog):
            for path in self.root.glob(f"{self.catalog.stem}.*"):
                if path.suffix != ".lock":
                    path.unlink(missing_ok=True)
        self.remove(self.root / "generations")

    def remove(self, folder: Path) -> None:
        """Delete a folder below the root; a missing one is no error."""
        with map_storage_errors(self.catalog):
            shutil.rmtree(folder, ignore_errors=not folder.exists())


def measure_folder(root: Path) -> int:
    """Return the bytes on disk of what is in a folder; a file that several generations share counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            with suppress(FileNotFoundError):  # another process may be writing, and sweeping, meanwhile
                found = Path(folder, name).stat()
                sizes[found.st_dev, found.st_ino] = found.st_size
    return sum(sizes.values())


def make_utf8_folder(home: Path) -> Path:
    """Return a data folder with a name that the vector store accepts; `StorageUnwritable` for any other."""
    try:
        os.fsencode(home).decode()
    except UnicodeDecodeError as error:
        raise StorageUnwritable(
            f"The name of the data folder {format_path(home)} is not UTF-8, which the vector store needs. "
            "Set CITEBOT_HOME to another folder."
        ) from error
    return home


@contextmanager
def map_storage_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the file system about a data folder into sentences."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _make_sqlite_error(path, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise make_damaged_catalog_error(path, str(error)) from error
    except OSError as error:
        raise _make_folder_error(path.parent, error) from error


def _make_folder_error(folder: Path, error: OSError) -> StorageUnwritable:
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return _make_unwritable_error(folder)
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return _make_full_error(folder)
    reason = error.strerror or error
    return StorageUnwritable(f"The data folder {folder} cannot be used: {reason}. Set CITEBOT_HOME to another folder.")


def _make_sqlite_error(path: Path, text: str) -> StorageError:
    if "locked" in text or "busy" in text:
        return StorageLocked(f"{path} is in use by another process. Wait until it has finished and try again.")
    if "full" in text:
        return _make_full_error(path.parent)
    if "disk I/O" in text:  # what SQLite says, for one, of a disk with no room for its shared memory
        return StorageUnwritable(f"{path} cannot be used ({text}). Make room on the disk or check it, then try again.")
    if "readonly" in text or "unable to open" in text:
        return _make_unwritable_error(path.parent)
    if _DAMAGE.search(text):
        return make_damaged_catalog_error(path, text)
    return StorageError(f"{path} cannot be read ({text}). Delete the folder {path.parent} and index again.")


def make_damaged_catalog_error(path: Path, reason: str) -> DamagedCatalog:
    """Make the error for a damaged catalog."""
    return DamagedCatalog(f"{path} is damaged ({reason}). The index is being rebuilt from the repository.")


def _make_full_error(folder: Path) -> StorageUnwritable:
    return StorageUnwritable(f"The disk that holds {folder} is full. Free some room and try again.")


def _make_unwritable_error(folder: Path) -> StorageUnwritable:
    return StorageUnwritable(
        f"The data folder {folder} cannot be written to. Make it writable or set CITEBOT_HOME to another."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexFolder:
    """The folder of one index, by name, and its bytes on disk."""

    name: str
    size: int


def list_index_folders(home: Path) -> Sequence[IndexFolder]:
    """List the indexes of a data folder, by name."""
    parent = home / REPOSITORIES_FOLDER
    folders = sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []
    return [IndexFolder(name=path.name, size=measure_folder(path)) for path in folders]


def name_index_folder(repository: Repository) -> str:
    """Name the folder of a repository's index: a readable name, and a digest of the repository's path."""
    place = hashlib.blake2b(str(repository.git_dir).encode(errors="surrogateescape"), digest_size=6).hexdigest()
    name = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in repository.name)
    return f"{name.lstrip('.')[:60] or 'repository'}-{place}"


def find_index_folder(path: Path) -> str:
    """Name the index folder of the repository around a path; raises `RepositoryError` if there is none."""
    with Repository.open(path) as repository:
        return name_index_folder(repository)


def copy_database(source: Path, target: Path, *, check: bool = True) -> None:
    """Copy a consistent state of a SQLite database while others read and write it; raises `sqlite3.Error`.

    The `check` of the copy reads all of it.
    """
    uri = f"{source.absolute().as_uri()}?mode=rw"  # not to be made where it is missing
    with closing(sqlite3.connect(uri, uri=True)) as db, closing(sqlite3.connect(target)) as copy:
        db.backup(copy)
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone() if check else ("ok",)
    if verdict != "ok":
        raise sqlite3.DatabaseError(str(verdict))


def copy_index(source: Path, target: Path, *, links: bool = False) -> None:
    """Copy an index at its newest generation, without the vector store, which is restored from the generation.

    With `links`, at once: its arrays, which never change, are linked to where that works. Raises `StorageError`.
    """
    for _ in range(_TRIES):
        shutil.rmtree(target, ignore_errors=True)
        try:
            _copy_data(DataFolder(source), DataFolder(target), links=links)
        except FileNotFoundError:  # swept meanwhile: there is a newer generation
            continue
        return
    raise StorageLocked(f"The index in {source} changes too fast to be copied. Try again later.")


def _copy_data(source: DataFolder, target: DataFolder, *, links: bool) -> None:
    target.root.mkdir(parents=True)
    with map_storage_errors(source.catalog):
        copy_database(source.catalog, target.catalog, check=not links)
        with closing(sqlite3.connect(target.catalog)) as db:
            (generation,) = db.execute(_CURRENT).fetchone()
    if generation is not None:
        target.snapshot(generation).mkdir(parents=True)
        for array in source.snapshot(generation).iterdir():
            copy = target.snapshot(generation) / array.name
            try:
                (os.link if links else shutil.copyfile)(array, copy)
            except OSError:  # the disk has no links
                shutil.copyfile(array, copy)


MAX_DEATHS = 2  # a commit at which so many processes died is not indexed any more


@contextmanager
def note_attempt(file: Path, commit: str, *, full: bool, kept: int = 0) -> Iterator[None]:
    """Note that a commit is being indexed while the context is open; only for the sole writer of the data folder.

    A note that is still there later means that the process died, which begins to count again where it has got further
    than the one before: it has `kept` more. Raises `CommitSetAside` after two deaths, unless a
    person asked for a `full` index.
    """
    deaths = 0 if full else count_deaths(file, commit, kept)
    if deaths >= MAX_DEATHS:
        raise CommitSetAside(
            f"Indexing {commit[:7]} has ended citebot {deaths} times, so it is not tried again. The previous index "
            "stays in use; the next commit will be indexed, and so will this one by `reindex full` or "
            "`citebot index --full`."
        )
    with map_storage_errors(file):
        file.write_text(json.dumps({"commit": commit, "deaths": deaths, "kept": kept}), encoding="utf-8")
    try:
        yield
    finally:
        with map_storage_errors(file):
            file.unlink(missing_ok=True)


def count_deaths(file: Path, commit: str, kept: int = 0) -> int:
    """Count the processes that died while indexing a commit; an unreadable note counts as none."""
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        if note["commit"] != commit:
            return 0
        return 1 if kept > int(note.get("kept", 0)) else int(note["deaths"]) + 1
    except (OSError, ValueError, KeyError, TypeError):
        return 0
