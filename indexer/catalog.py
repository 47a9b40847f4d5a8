"""The SQLite catalog of one repository: files, text, chunks, symbols, references, imports and generations.

Rows carry the generation they came with (`added`) and the one they went with (`removed`), so that a generation is
the rows with `added <= g < removed`: a refresh writes only what changed, in one transaction, and a reader goes on
seeing its own generation until that is swept.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.errors import StorageVersion
from indexer.models import Commit, Definition, FileEntry, Import, ParsedFile, Reference, SourceType, Symbol
from indexer.packing import unpack
from indexer.storage import layout_lock, storage_errors

VERSION = 1
_FOREVER = 2**62
_SHRINK_STEP = 500  # pages

_SCHEMA = f"""
CREATE TABLE generations (
    id INTEGER PRIMARY KEY, sha TEXT NOT NULL, branch TEXT, committed_at INTEGER NOT NULL, subject TEXT NOT NULL,
    indexed_at REAL NOT NULL, provenance TEXT NOT NULL, skipped TEXT NOT NULL, retired_at REAL
) STRICT;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, blob TEXT NOT NULL, language TEXT NOT NULL, source_type TEXT NOT NULL,
    lines INTEGER NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT {_FOREVER}
) STRICT;
CREATE INDEX files_by_path ON files (path);
CREATE INDEX files_by_end ON files (removed);
CREATE TABLE texts (blob TEXT PRIMARY KEY, text BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, key TEXT NOT NULL, start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL, scope TEXT NOT NULL
) STRICT;
CREATE INDEX chunks_by_file ON chunks (file);
CREATE INDEX chunks_by_key ON chunks (key);
CREATE TABLE symbols (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL,
    qualified_name TEXT NOT NULL, kind TEXT NOT NULL, signature TEXT NOT NULL, doc TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL
) STRICT;
CREATE INDEX symbols_by_name ON symbols (folded);
CREATE INDEX symbols_by_file ON symbols (file);
CREATE TABLE refs (
    file INTEGER NOT NULL, name TEXT NOT NULL, qualifier TEXT NOT NULL, kind TEXT NOT NULL, line INTEGER NOT NULL,
    scope TEXT NOT NULL
) STRICT;
CREATE INDEX refs_by_name ON refs (name);
CREATE INDEX refs_by_file ON refs (file);
CREATE TABLE imports (
    file INTEGER NOT NULL, module TEXT NOT NULL, name TEXT NOT NULL, alias TEXT NOT NULL, line INTEGER NOT NULL
) STRICT;
CREATE INDEX imports_by_file ON imports (file);
CREATE INDEX imports_by_name ON imports (name);
"""

_ALIVE = "files.added <= :generation AND files.removed > :generation"


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """The index of one repository at one commit. `provenance` names what it was made with."""

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
        self._path = path
        self._lock = threading.RLock()
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not _has_content(path):
                _lay_out(path)
            self._db = self._connect()
            try:
                self._check_version()
            except BaseException:
                self._db.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None, timeout=10)
        db.row_factory = sqlite3.Row
        return db

    def _check_version(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise StorageVersion(
                f"{self._path} was written by another version of citebot (format {version}, this one reads "
                f"{VERSION}). Delete the folder {self._path.parent} and index again, or use that version."
            )

    def close(self) -> None:
        """Close the reading connection."""
        with self._lock:
            self._db.close()

    def _rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[sqlite3.Row]:
        with self._lock, storage_errors(self._path):
            return self._db.execute(sql, parameters or {}).fetchall()

    # Generations

    def current(self) -> Generation | None:
        """The newest finished generation."""
        rows = self._rows("SELECT * FROM generations WHERE retired_at IS NULL ORDER BY id DESC LIMIT 1")
        return _generation(rows[0]) if rows else None

    def retired(self) -> list[tuple[int, float]]:
        """Older generations that are still on disk, with the time each was replaced."""
        rows = self._rows("SELECT id, retired_at FROM generations WHERE retired_at IS NOT NULL ORDER BY id")
        return [(row["id"], row["retired_at"]) for row in rows]

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """One transaction: everything that is written in it is seen at once, or never."""
        with storage_errors(self._path), closing(self._connect()) as db:
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield Writer(db)
            except BaseException:
                if db.in_transaction:  # a full disk has rolled back already
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def shrink(self) -> None:
        """Give free pages back to the disk, some at a time: whoever writes in between waits for one step at most."""
        with storage_errors(self._path), closing(self._connect()) as db:
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
        sql = f"SELECT * FROM files WHERE {_ALIVE} ORDER BY path"
        return [_file(row) for row in self._rows(sql, {"generation": generation})]

    def file(self, generation: int, path: str) -> FileRow | None:
        """One file of a generation."""
        rows = self._rows(
            f"SELECT * FROM files WHERE path = :path AND {_ALIVE}", {"path": path, "generation": generation}
        )
        return _file(rows[0]) if rows else None

    def text(self, blob: str) -> str:
        """The stored text of a blob, secrets masked."""
        rows = self._rows("SELECT text FROM texts WHERE blob = :blob", {"blob": blob})
        return unpack(rows[0]["text"]) if rows else ""

    def chunk_keys(self, generation: int) -> dict[int, str]:
        """The content key of each chunk id of a generation."""
        sql = f"SELECT chunks.id, chunks.key FROM chunks JOIN files ON files.id = chunks.file WHERE {_ALIVE}"
        return {row["id"]: row["key"] for row in self._rows(sql, {"generation": generation})}

    def chunks_of_keys(self, generation: int, keys: Sequence[str]) -> dict[str, list[int]]:
        """The chunk ids of a generation that have one of the content keys."""
        sql = f"""SELECT chunks.id, chunks.key FROM chunks JOIN files ON files.id = chunks.file
            WHERE chunks.key IN (SELECT value FROM json_each(:keys)) AND {_ALIVE}"""
        found: dict[str, list[int]] = {}
        for row in self._rows(sql, {"keys": json.dumps(list(keys)), "generation": generation}):
            found.setdefault(row["key"], []).append(row["id"])
        return found

    def definitions(self, generation: int, name: str) -> list[Definition]:
        """Definitions of a plain name in any case, by path and line."""
        sql = f"""SELECT files.path, symbols.* FROM symbols JOIN files ON files.id = symbols.file
            WHERE symbols.folded = :name AND {_ALIVE} ORDER BY files.path, symbols.start_line"""
        rows = self._rows(sql, {"name": name.lower(), "generation": generation})
        return [Definition(path=row["path"], symbol=_symbol(row)) for row in rows]

    def symbols(self, generation: int, path: str) -> list[Symbol]:
        """The definitions of one file, in its order."""
        sql = f"""SELECT symbols.* FROM symbols JOIN files ON files.id = symbols.file
            WHERE files.path = :path AND {_ALIVE} ORDER BY symbols.start_line, symbols.end_line DESC"""
        return [_symbol(row) for row in self._rows(sql, {"path": path, "generation": generation})]

    def symbols_between(self, file: int, start_line: int, end_line: int) -> list[Symbol]:
        """The definitions of a file (by id) that have a line in common with a range, outer ones first."""
        sql = """SELECT * FROM symbols WHERE file = :file AND start_line <= :end AND end_line >= :start
            ORDER BY start_line, end_line DESC"""
        return [_symbol(row) for row in self._rows(sql, {"file": file, "start": start_line, "end": end_line})]

    def references_to(self, generation: int, name: str) -> list[tuple[str, Reference]]:
        """Every use of a name, with the path it stands in."""
        sql = f"""SELECT files.path, refs.* FROM refs JOIN files ON files.id = refs.file
            WHERE refs.name = :name AND {_ALIVE} ORDER BY files.path, refs.line"""
        return [(row["path"], _reference(row)) for row in self._rows(sql, {"name": name, "generation": generation})]

    def references_in(self, generation: int, path: str) -> list[Reference]:
        """Every use of a name in one file."""
        sql = f"""SELECT refs.* FROM refs JOIN files ON files.id = refs.file
            WHERE files.path = :path AND {_ALIVE} ORDER BY refs.line"""
        return [_reference(row) for row in self._rows(sql, {"path": path, "generation": generation})]

    def imports(self, generation: int, path: str) -> list[Import]:
        """What one file imports."""
        sql = f"""SELECT imports.* FROM imports JOIN files ON files.id = imports.file
            WHERE files.path = :path AND {_ALIVE} ORDER BY imports.line"""
        rows = self._rows(sql, {"path": path, "generation": generation})
        return [Import(module=row["module"], name=row["name"], alias=row["alias"], line=row["line"]) for row in rows]

    def aliases(self, generation: int, name: str) -> list[tuple[str, str]]:
        """The files that import a name under another one, with that one."""
        sql = f"""SELECT DISTINCT files.path, imports.alias FROM imports JOIN files ON files.id = imports.file
            WHERE imports.name = :name AND imports.alias <> :name AND {_ALIVE} ORDER BY files.path, imports.alias"""
        return [(row["path"], row["alias"]) for row in self._rows(sql, {"name": name, "generation": generation})]

    def counts(self, generation: int) -> dict[str, int]:
        """How many files, chunks and symbols a generation has."""
        sql = f"""SELECT count(*) AS files,
            (SELECT count(*) FROM chunks JOIN files ON files.id = chunks.file WHERE {_ALIVE}) AS chunks,
            (SELECT count(*) FROM symbols JOIN files ON files.id = symbols.file WHERE {_ALIVE}) AS symbols
            FROM files WHERE {_ALIVE}"""
        return dict(self._rows(sql, {"generation": generation})[0])


class Writer:
    """The writes of one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def begin_generation(self, commit: Commit, *, provenance: str, skipped: dict[str, int]) -> int:
        """Retire the current generation and number the next one; it is seen once the transaction is committed."""
        now = time.time()
        self._db.execute("UPDATE generations SET retired_at = ? WHERE retired_at IS NULL", (now,))
        values = (commit.sha, commit.branch, commit.committed_at, commit.subject, now, provenance, json.dumps(skipped))
        cursor = self._db.execute(
            "INSERT INTO generations (sha, branch, committed_at, subject, indexed_at, provenance, skipped)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        return int(cursor.lastrowid or 0)

    def set_skipped(self, generation: int, skipped: dict[str, int]) -> None:
        """Set the counts of files that were left out, by reason."""
        self._db.execute("UPDATE generations SET skipped = ? WHERE id = ?", (json.dumps(skipped), generation))

    def references(self, generation: int) -> Iterator[tuple[int, str, int]]:
        """Every use of a name in a generation, those just written included: catalog file id, name and line."""
        sql = f"SELECT refs.file, refs.name, refs.line FROM refs JOIN files ON files.id = refs.file WHERE {_ALIVE}"
        for row in self._db.execute(sql, {"generation": generation}):
            yield row["file"], row["name"], row["line"]

    def remove_files(self, generation: int, files: Iterable[int]) -> None:
        """End the life of files with this generation."""
        self._db.executemany("UPDATE files SET removed = ? WHERE id = ?", [(generation, file) for file in files])

    def add_file(self, generation: int, entry: FileEntry, blob: str, packed: bytes) -> int:
        """Add a file and its text, packed; its id is returned."""
        self._db.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (blob, packed))
        cursor = self._db.execute(
            "INSERT INTO files (path, blob, language, source_type, lines, added) VALUES (?, ?, ?, ?, ?, ?)",
            (entry.path, blob, entry.language, entry.source_type, entry.lines, generation),
        )
        return int(cursor.lastrowid or 0)

    def add_parsed(self, file: int, parsed: ParsedFile, keys: Sequence[str]) -> Sequence[int]:
        """Add what was found in a file; the chunks' ids are returned in order."""
        self._db.executemany(
            "INSERT INTO symbols (file, name, folded, qualified_name, kind, signature, doc, start_line, end_line)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(file, s.name, s.name.lower(), s.qualified_name, s.kind, s.signature, s.doc, s.start_line, s.end_line)
             for s in parsed.symbols],
        )  # fmt: skip
        self._db.executemany(
            "INSERT INTO refs VALUES (?, ?, ?, ?, ?, ?)",
            [(file, r.name, r.qualifier, r.kind, r.line, r.scope) for r in parsed.references],
        )
        self._db.executemany(
            "INSERT INTO imports VALUES (?, ?, ?, ?, ?)",
            [(file, i.module, i.name, i.alias, i.line) for i in parsed.imports],
        )
        (first,) = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").fetchone()
        ids = range(first, first + len(keys))
        self._db.executemany(
            "INSERT INTO chunks (id, file, key, start_line, end_line, scope) VALUES (?, ?, ?, ?, ?, ?)",
            [(id_, file, key, c.start_line, c.end_line, c.scope)
             for id_, key, c in zip(ids, keys, parsed.chunks, strict=True)],
        )  # fmt: skip
        return ids

    def sweep(self, generations: Sequence[int]) -> set[str]:
        """Delete generations and what no other one holds; the content keys that nothing uses any more are returned."""
        self._db.executemany("DELETE FROM generations WHERE id = ?", [(each,) for each in generations])
        dead = [
            row["id"]
            for row in self._db.execute(
                f"SELECT id FROM files WHERE removed < {_FOREVER} AND NOT EXISTS (SELECT 1 FROM generations AS g"
                " WHERE files.added <= g.id AND files.removed > g.id)"
            )
        ]
        keys: set[str] = set()
        for file in dead:
            keys.update(row["key"] for row in self._db.execute("SELECT key FROM chunks WHERE file = ?", (file,)))
            for table in ("chunks", "symbols", "refs", "imports"):
                self._db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))
            self._db.execute("DELETE FROM files WHERE id = ?", (file,))
        if dead:
            self._db.execute("DELETE FROM texts WHERE blob NOT IN (SELECT blob FROM files)")
        return {key for key in keys if not self._is_used(key)}

    def _is_used(self, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM chunks WHERE key = ? LIMIT 1", (key,)).fetchone() is not None


def _lay_out(path: Path) -> None:
    """Make an empty catalog beside the path and move it there: nobody ever sees one half made."""
    with layout_lock(path):
        if _has_content(path):  # another process was faster
            return
        draft = path.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        db = sqlite3.connect(draft, isolation_level=None)
        try:
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # or the file never shrinks
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")
        finally:
            db.close()
        draft.replace(path)


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _free_pages(db: sqlite3.Connection) -> int:
    (free,) = db.execute("PRAGMA freelist_count").fetchone()
    return int(free)


def _generation(row: sqlite3.Row) -> Generation:
    commit = Commit(sha=row["sha"], branch=row["branch"], committed_at=row["committed_at"], subject=row["subject"])
    return Generation(
        id=row["id"],
        commit=commit,
        indexed_at=row["indexed_at"],
        provenance=row["provenance"],
        skipped=json.loads(row["skipped"]),
    )


def _file(row: sqlite3.Row) -> FileRow:
    source_type: SourceType = row["source_type"]
    entry = FileEntry(path=row["path"], language=row["language"], source_type=source_type, lines=row["lines"])
    return FileRow(id=row["id"], entry=entry, blob=row["blob"])


def _symbol(row: sqlite3.Row) -> Symbol:
    return Symbol(
        name=row["name"],
        qualified_name=row["qualified_name"],
        kind=row["kind"],
        signature=row["signature"],
        doc=row["doc"],
        start_line=row["start_line"],
        end_line=row["end_line"],
    )


def _reference(row: sqlite3.Row) -> Reference:
    return Reference(
        name=row["name"], qualifier=row["qualifier"], kind=row["kind"], line=row["line"], scope=row["scope"]
    )
