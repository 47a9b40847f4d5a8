"""The layout of the catalog in SQLite, and its migration from earlier layouts."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from indexer.errors import StorageVersion
from indexer.store.file_locks import lock_file

CATALOG_VERSION = 3
TABLES = ("generations", "files", "omissions", "texts", "chunks", "symbols", "refs", "imports", "registrations")
FOREVER = 2**62

_SINCE_2 = """
CREATE INDEX files_by_blob ON files (blob);
CREATE TABLE omissions (path TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE INDEX omissions_by_path ON omissions (path);
"""
_SINCE_3 = """
CREATE TABLE registrations (
    file INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, detail TEXT NOT NULL, help TEXT NOT NULL,
    handler TEXT NOT NULL, line INTEGER NOT NULL
) STRICT;
CREATE INDEX registrations_by_file ON registrations (file);
CREATE INDEX registrations_by_kind ON registrations (kind);
"""
_SCHEMA = f"""
CREATE TABLE generations (
    id INTEGER PRIMARY KEY, sha TEXT NOT NULL, branch TEXT, committed_at INTEGER NOT NULL, subject TEXT NOT NULL,
    indexed_at REAL NOT NULL, provenance TEXT NOT NULL, skipped TEXT NOT NULL, retired_at REAL
) STRICT;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, blob TEXT NOT NULL, language TEXT NOT NULL, source_type TEXT NOT NULL,
    lines INTEGER NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT {FOREVER}
) STRICT;
CREATE INDEX files_by_path ON files (path);
CREATE INDEX files_by_end ON files (removed);
{_SINCE_2}
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
{_SINCE_3}
"""

# What makes a catalog of an earlier layout one of this.
_MIGRATIONS = {1: _SINCE_2 + _SINCE_3, 2: _SINCE_3}

ALIVE = "files.added <= :generation AND files.removed > :generation"


def prepare_schema(path: Path) -> None:
    """Create a catalog if there is none, and migrate one of an earlier layout.

    `StorageVersion` for an unknown layout.
    """
    if not has_content(path):
        _create_catalog(path)
    if _read_version(path) == CATALOG_VERSION:
        return
    with _lock_schema(path):
        version = _read_version(path)
        if version in _MIGRATIONS:
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                steps = _MIGRATIONS[version]
                db.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version={CATALOG_VERSION}; COMMIT;")
        elif version != CATALOG_VERSION:  # unless another process was faster
            raise StorageVersion(
                f"{path} was written by another version of citebot (format {version}, this one reads "
                f"{CATALOG_VERSION}). Delete the folder {path.parent} and index again, or use that version."
            )


@contextmanager
def _lock_schema(path: Path) -> Iterator[None]:
    """Wait until no other process creates the schema: SQLite itself does not wait when it switches to WAL."""
    lock = lock_file(path.with_suffix(".lock"), waits=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def create_catalog_tables(db: sqlite3.Connection) -> None:
    """Create all tables of a catalog."""
    db.executescript(_SCHEMA)


def connect_catalog(path: Path) -> sqlite3.Connection:
    """Connect to a catalog, even in a read-only folder: SQLite creates files next to a writable one."""
    is_fixed = not os.access(path.parent, os.W_OK) and not has_content(path.with_name(f"{path.name}-wal"))
    place = f"{path.absolute().as_uri()}?immutable=1" if is_fixed else str(path)
    return sqlite3.connect(place, uri=is_fixed, check_same_thread=False, isolation_level=None, timeout=10)


def _read_version(path: Path) -> int:
    with closing(connect_catalog(path)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _create_catalog(path: Path) -> None:
    """Create an empty catalog next to the path and move it there, so that it appears complete."""
    with _lock_schema(path):
        if has_content(path):  # another process was faster
            return
        draft = path.with_suffix(".draft")
        for stale in (draft, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
            stale.unlink(missing_ok=True)  # the log of another file would be taken for this one's
        db = sqlite3.connect(draft, isolation_level=None)
        try:
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # or the file never shrinks
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={CATALOG_VERSION}; COMMIT;")
        finally:
            db.close()
        draft.replace(path)


def has_content(path: Path) -> bool:
    """Whether there is a catalog, even a damaged one."""
    return path.exists() and path.stat().st_size > 0
