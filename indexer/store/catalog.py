"""The SQLite catalog of one repository: files, text, chunks, symbols, references, imports and generations.

Rows carry the generation they came with (`added`) and the one they went with (`removed`), so that a generation is
the rows with `added <= g < removed`: a refresh writes only what changed, in one transaction, and a reader continues
seeing its own generation until that is swept.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from indexer.checksums import Checksums
from indexer.errors import DamagedCatalog
from indexer.store.catalog_schema import ALIVE, TABLES, connect_catalog, has_content, prepare_schema
from indexer.store.catalog_writer import CatalogWriter
from indexer.store.data_folder import DataFolder, make_damaged_catalog_error, map_storage_errors
from indexer.text.decoding import unpack
from indexer.types import (
    Commit,
    Definition,
    FileEntry,
    Import,
    LeftOut,
    Reference,
    Registration,
    RegistrationKind,
    RegistrationSite,
    SourceType,
    Symbol,
)

log = logging.getLogger(__name__)

Value = TypeVar("Value", Symbol, Import, Registration, Reference)

_SHRINK_STEP = 500  # pages
_WRITE_CACHE_KIB = 64_000  # a page that is changed again after it left the cache is written again


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """The index of one repository at one commit. `provenance` names its tools and settings."""

    id: int
    commit: Commit
    indexed_at: float
    provenance: str
    skipped: dict[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRow:
    """A file of the catalog."""

    id: int
    entry: FileEntry
    blob: str


class Catalog:
    """Reads from one connection shared by threads, writes through one transaction at a time on another."""

    def __init__(self, path: Path) -> None:
        self.is_damaged = False
        self._path = path
        self._lock = threading.RLock()
        self._checksums = Checksums(path.with_suffix(".json"), lambda: [path])
        with self._map_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._check_file()
            prepare_schema(path)
            self._file_identity = _identify_file(path)
            self._db = self._connect()
            with ExitStack() as stack:
                stack.callback(self._db.close)
                found = {row["name"] for row in self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
                if missing := [name for name in TABLES if name not in found]:
                    raise make_damaged_catalog_error(self._path, f"the table {missing[0]} is missing")
                stack.pop_all()

    def _check_file(self) -> None:
        """Compare the file with its digest; without one, at least check for what could crash SQLite."""
        if not has_content(self._path):
            self._checksums.drop()
            return
        is_sound = self._checksums.match()
        if is_sound is None:
            with closing(self._connect()) as db:
                is_sound = db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        if not is_sound:
            raise make_damaged_catalog_error(self._path, "it was changed by another program")

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        """Turn errors into sentences, and remember damage, which would only be met again."""
        try:
            with map_storage_errors(self._path):
                yield
        except DamagedCatalog:
            self.is_damaged = True
            raise

    def _connect(self) -> sqlite3.Connection:
        db = connect_catalog(self._path)
        db.row_factory = sqlite3.Row
        return db

    def close(self) -> None:
        """Close the reading connection."""
        with self._lock:
            self._db.close()

    def is_gone(self) -> bool:
        """Whether the file was deleted or replaced since it was opened, so that nobody else sees it."""
        try:
            return _identify_file(self._path) != self._file_identity
        except FileNotFoundError:
            return True

    def is_noted(self) -> bool:
        """Whether the file has a digest."""
        return self._checksums.is_noted()

    def note(self) -> None:
        """Record the digest of the file if there is none, for the next opener; not while somebody reads."""
        if self.is_noted() or self.is_damaged or self.is_gone():
            return
        with self._map_errors(), closing(self._connect()) as db:
            db.execute("PRAGMA busy_timeout=0")
            (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                self._checksums.note()

    def _fetch_rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[sqlite3.Row]:
        with self._lock, self._map_errors():
            return self._db.execute(sql, parameters or {}).fetchall()

    # Generations

    def current(self) -> Generation | None:
        """The newest finished generation."""
        rows = self._fetch_rows("SELECT * FROM generations WHERE retired_at IS NULL ORDER BY id DESC LIMIT 1")
        return _make_generation(rows[0]) if rows else None

    def list_retired(self) -> list[tuple[int, float]]:
        """Return older generations still on disk, with the time each was replaced."""
        rows = self._fetch_rows("SELECT id, retired_at FROM generations WHERE retired_at IS NOT NULL ORDER BY id")
        return [(row["id"], row["retired_at"]) for row in rows]

    @contextmanager
    def begin_write(self) -> Iterator[CatalogWriter]:
        """Begin one transaction: all its writes become visible at once, or never."""
        with self._map_errors(), closing(self._connect()) as db:
            self._checksums.drop()
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute(f"PRAGMA cache_size=-{_WRITE_CACHE_KIB}")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield CatalogWriter(db)
            except BaseException:
                if db.in_transaction:  # a full disk has rolled back already
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def shrink(self) -> None:
        """Give free pages back to the disk in small steps, so that other writers wait for one step at most."""
        with self._map_errors(), closing(self._connect()) as db:
            self._checksums.drop()
            free = _free_pages(db)
            while free:
                db.executescript(f"PRAGMA incremental_vacuum({_SHRINK_STEP})")
                before, free = free, _free_pages(db)
                if free >= before:  # laid out by an earlier version, which could not give pages back
                    return
            db.execute("PRAGMA busy_timeout=0")  # where somebody reads just now, the next checkpoint truncates
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # What a generation holds

    def files(self, generation: int) -> list[FileRow]:
        """All files of a generation, by path."""
        sql = f"SELECT * FROM files WHERE {ALIVE} ORDER BY path"
        return [_make_file_row(row) for row in self._fetch_rows(sql, {"generation": generation})]

    def file(self, generation: int, path: str) -> FileRow | None:
        """One file of a generation."""
        rows = self._fetch_rows(
            f"SELECT * FROM files WHERE path = :path AND {ALIVE}", {"path": path, "generation": generation}
        )
        return _make_file_row(rows[0]) if rows else None

    def list_left_out(self, paths: Collection[str] | None = None) -> list[LeftOut]:
        """List the paths that the newest generation omits, or those among some paths, in order."""
        among = "" if paths is None else "WHERE path IN (SELECT value FROM json_each(:paths))"
        parameters = {"paths": json.dumps([*paths])} if paths is not None else {}
        rows = self._fetch_rows(f"SELECT path, reason FROM omissions {among} ORDER BY path", parameters)
        return [LeftOut(path=row["path"], reason=row["reason"]) for row in rows]

    def list_paths_of(self, generation: int, blobs: Iterable[str]) -> list[tuple[str, str]]:
        """Return the files of a generation with one of the contents: their paths in order, and the content."""
        sql = f"""SELECT path, blob FROM files WHERE blob IN (SELECT value FROM json_each(:blobs)) AND {ALIVE}
            ORDER BY path"""
        rows = self._fetch_rows(sql, {"blobs": json.dumps(list(blobs)), "generation": generation})
        return [(row["path"], row["blob"]) for row in rows]

    def text(self, blob: str) -> str:
        """The stored text of a blob, secrets masked."""
        rows = self._fetch_rows("SELECT text FROM texts WHERE blob = :blob", {"blob": blob})
        try:
            return unpack(rows[0]["text"]) if rows else ""
        except ValueError as error:
            self.is_damaged = True
            raise make_damaged_catalog_error(self._path, f"a text cannot be read: {error}") from error

    def map_chunk_keys(self, generation: int) -> dict[int, str]:
        """The content key of each chunk id of a generation."""
        sql = f"SELECT chunks.id, chunks.key FROM chunks JOIN files ON files.id = chunks.file WHERE {ALIVE}"
        return {row["id"]: row["key"] for row in self._fetch_rows(sql, {"generation": generation})}

    def map_chunks_of_keys(self, generation: int, keys: Sequence[str]) -> dict[str, list[int]]:
        """Return the chunk ids of a generation with one of the content keys."""
        sql = f"""SELECT chunks.id, chunks.key FROM chunks JOIN files ON files.id = chunks.file
            WHERE chunks.key IN (SELECT value FROM json_each(:keys)) AND {ALIVE}"""
        found: dict[str, list[int]] = {}
        for row in self._fetch_rows(sql, {"keys": json.dumps(list(keys)), "generation": generation}):
            found.setdefault(row["key"], []).append(row["id"])
        return found

    def definitions(self, generation: int, name: str) -> list[Definition]:
        """Return the definitions of a plain name in any case, by path and line."""
        sql = f"""SELECT files.path, symbols.* FROM symbols JOIN files ON files.id = symbols.file
            WHERE symbols.folded = :name AND {ALIVE} ORDER BY files.path, symbols.start_line"""
        rows = self._fetch_rows(sql, {"name": name.lower(), "generation": generation})
        return [Definition(path=row["path"], symbol=_make_value(Symbol, row)) for row in rows]

    def list_qualified_names(self, generation: int, beginning: str, limit: int) -> list[str]:
        """List qualified names whose plain name (`send`) or last parts (`Session.se`) have a prefix."""
        sql = f"""SELECT DISTINCT symbols.qualified_name FROM symbols JOIN files ON files.id = symbols.file
            WHERE symbols.folded >= :plain AND symbols.folded < :end AND {ALIVE}
            AND instr('.' || lower(symbols.qualified_name), :wanted) > 0
            ORDER BY length(symbols.qualified_name), symbols.qualified_name LIMIT :limit"""
        folded = beginning.lower()
        plain = folded.rpartition(".")[2]
        values = {"plain": plain, "end": f"{plain}\U0010ffff", "wanted": f".{folded}", "limit": limit}
        return [row["qualified_name"] for row in self._fetch_rows(sql, {"generation": generation, **values})]

    def symbols(self, generation: int, path: str) -> list[Symbol]:
        """Return the definitions of one file in order."""
        sql = f"""SELECT symbols.* FROM symbols JOIN files ON files.id = symbols.file
            WHERE files.path = :path AND {ALIVE} ORDER BY symbols.start_line, symbols.end_line DESC"""
        return [_make_value(Symbol, row) for row in self._fetch_rows(sql, {"path": path, "generation": generation})]

    def list_references_to(self, generation: int, name: str) -> list[tuple[str, Reference]]:
        """Return every use of a name, with its path."""
        sql = f"""SELECT files.path, refs.* FROM refs JOIN files ON files.id = refs.file
            WHERE refs.name = :name AND {ALIVE} ORDER BY files.path, refs.line"""
        return [
            (row["path"], _make_value(Reference, row))
            for row in self._fetch_rows(sql, {"name": name, "generation": generation})
        ]

    def list_references_in(self, generation: int, path: str) -> list[Reference]:
        """Every use of a name in one file."""
        sql = f"""SELECT refs.* FROM refs JOIN files ON files.id = refs.file
            WHERE files.path = :path AND {ALIVE} ORDER BY refs.line"""
        return [_make_value(Reference, row) for row in self._fetch_rows(sql, {"path": path, "generation": generation})]

    def list_imports(self, generation: int, path: str) -> list[Import]:
        """Return the imports of one file."""
        sql = f"""SELECT imports.* FROM imports JOIN files ON files.id = imports.file
            WHERE files.path = :path AND {ALIVE} ORDER BY imports.line"""
        rows = self._fetch_rows(sql, {"path": path, "generation": generation})
        return [_make_value(Import, row) for row in rows]

    def list_all_imports(self, generation: int) -> list[tuple[str, Import]]:
        """Return the imports of all files, by path and line."""
        sql = f"""SELECT files.path, imports.* FROM imports JOIN files ON files.id = imports.file
            WHERE {ALIVE} ORDER BY files.path, imports.line"""
        return [(row["path"], _make_value(Import, row)) for row in self._fetch_rows(sql, {"generation": generation})]

    def registrations(self, generation: int, kinds: Iterable[RegistrationKind], *, most: int) -> list[RegistrationSite]:
        """Return a generation's registrations of some kinds, by path and line, up to a limit."""
        sql = f"""SELECT files.path, registrations.* FROM registrations JOIN files ON files.id = registrations.file
            WHERE registrations.kind IN (SELECT value FROM json_each(:kinds)) AND {ALIVE}
            ORDER BY files.path, registrations.line LIMIT :most"""
        rows = self._fetch_rows(sql, {"kinds": json.dumps(list(kinds)), "generation": generation, "most": most})
        return [RegistrationSite(path=row["path"], registration=_make_value(Registration, row)) for row in rows]

    def aliases(self, generation: int, name: str) -> list[tuple[str, str]]:
        """Return the files that import a name under another one, with that name."""
        sql = f"""SELECT DISTINCT files.path, imports.alias FROM imports JOIN files ON files.id = imports.file
            WHERE imports.name = :name AND imports.alias <> :name AND {ALIVE} ORDER BY files.path, imports.alias"""
        return [(row["path"], row["alias"]) for row in self._fetch_rows(sql, {"name": name, "generation": generation})]

    def count_rows(self, generation: int) -> dict[str, int]:
        """Count the files, chunks and symbols of a generation."""
        sql = f"""SELECT count(*) AS files,
            (SELECT count(*) FROM chunks JOIN files ON files.id = chunks.file WHERE {ALIVE}) AS chunks,
            (SELECT count(*) FROM symbols JOIN files ON files.id = symbols.file WHERE {ALIVE}) AS symbols
            FROM files WHERE {ALIVE}"""
        return dict(self._fetch_rows(sql, {"generation": generation})[0])


def _identify_file(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _free_pages(db: sqlite3.Connection) -> int:
    (free,) = db.execute("PRAGMA freelist_count").fetchone()
    return int(free)


def _make_generation(row: sqlite3.Row) -> Generation:
    commit = Commit(sha=row["sha"], branch=row["branch"], committed_at=row["committed_at"], subject=row["subject"])
    return Generation(
        id=row["id"],
        commit=commit,
        indexed_at=row["indexed_at"],
        provenance=row["provenance"],
        skipped=json.loads(row["skipped"]),
    )


def _make_file_row(row: sqlite3.Row) -> FileRow:
    source_type: SourceType = row["source_type"]
    entry = FileEntry(path=row["path"], language=row["language"], source_type=source_type, lines=row["lines"])
    return FileRow(id=row["id"], entry=entry, blob=row["blob"])


def _make_value(kind: type[Value], row: sqlite3.Row) -> Value:
    """Make a value of a row whose columns are called like its fields."""
    names: Sequence[str] = vars(kind)["__slots__"]
    return kind(**{name: row[name] for name in names})


class LiveCatalog:
    """Opens the catalog of a folder. Readers of an earlier catalog continue with it until all have closed it.

    `was_damaged` says that the index was lost, and nothing has been indexed since.
    """

    def __init__(self, folder: DataFolder) -> None:
        self.was_damaged = False
        self._folder = folder
        self._lock = threading.Lock()
        self._replaced: list[Catalog] = []
        self._catalog = self._open()

    def get(self) -> Catalog:
        """Return the catalog; another process may have replaced it."""
        with self._lock:
            if self._catalog.is_gone():
                self._switch(self._open())
            return self._catalog

    def renew(self) -> None:
        """Start over after damage; only for the sole writer of the folder."""
        with self._lock:
            if self._catalog.is_damaged and not self._catalog.is_gone():
                self._switch(self._begin_anew("damage was met while it was read"))

    def close(self) -> None:
        """Close everything."""
        with self._lock:
            for catalog in (*self._replaced, self._catalog):
                catalog.close()

    def _switch(self, catalog: Catalog) -> None:
        self._replaced.append(self._catalog)
        self._catalog = catalog

    def _open(self) -> Catalog:
        try:
            return Catalog(self._folder.catalog)
        except DamagedCatalog:
            with self._folder.hold_as_writer():
                try:
                    return Catalog(self._folder.catalog)  # another process was faster
                except DamagedCatalog as error:
                    return self._begin_anew(str(error))

    def _begin_anew(self, reason: str) -> Catalog:
        log.info("%s is deleted: %s", self._folder.catalog, reason)
        self._folder.remove_index()
        self.was_damaged = True
        return Catalog(self._folder.catalog)
