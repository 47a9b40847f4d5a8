"""Writes to the catalog in one transaction: adds a generation, or removes the remains of old ones."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from indexer.git.objects import Omission
from indexer.store.catalog_schema import ALIVE, FOREVER
from indexer.types import Commit, FileEntry, ParsedFile


class CatalogWriter:
    """The writes of one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def begin_generation(self, commit: Commit, *, provenance: str) -> int:
        """Retire the current generation and number the next one, which becomes visible with the commit."""
        now = time.time()
        self._db.execute("UPDATE generations SET retired_at = ? WHERE retired_at IS NULL", (now,))
        values = (commit.sha, commit.branch, commit.committed_at, commit.subject, now, provenance, "{}")
        cursor = self._db.execute(
            "INSERT INTO generations (sha, branch, committed_at, subject, indexed_at, provenance, skipped)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        return int(cursor.lastrowid or 0)

    def leave_out(
        self, generation: int, omissions: Collection[Omission], *, instead_of: Collection[str] | None
    ) -> None:
        """Record a generation's omitted files, replacing the records for some paths, or, with None, all."""
        counts = Counter(omission.reason for omission in omissions)
        if instead_of is None:
            self._db.execute("DELETE FROM omissions")
        else:
            before = self._db.execute("SELECT skipped FROM generations WHERE id < ? ORDER BY id DESC", (generation,))
            counts.update(json.loads(before.fetchone()["skipped"]))
            sql = "DELETE FROM omissions WHERE path IN (SELECT value FROM json_each(?)) RETURNING reason"
            deleted = self._db.execute(sql, (json.dumps(list(instead_of)),)).fetchall()
            counts.subtract(Counter(row["reason"] for row in deleted))
        self._db.executemany("INSERT INTO omissions VALUES (?, ?)", [(each.path, each.reason) for each in omissions])
        self._db.execute("UPDATE generations SET skipped = ? WHERE id = ?", (json.dumps(+counts), generation))

    def references(self, generation: int) -> Iterator[tuple[int, str, int]]:
        """Every use of a name in a generation, those just written included: catalog file id, name and line."""
        sql = f"SELECT refs.file, refs.name, refs.line FROM refs JOIN files ON files.id = refs.file WHERE {ALIVE}"
        for row in self._db.execute(sql, {"generation": generation}):
            yield row["file"], row["name"], row["line"]

    def remove_files(self, generation: int, files: Iterable[int]) -> None:
        """Mark files as removed in this generation."""
        self._db.executemany("UPDATE files SET removed = ? WHERE id = ?", [(generation, file) for file in files])

    def add_file(self, generation: int, entry: FileEntry, blob: str, packed: bytes) -> int:
        """Add a file and its packed text; return its id."""
        self._db.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (blob, packed))
        cursor = self._db.execute(
            "INSERT INTO files (path, blob, language, source_type, lines, added) VALUES (?, ?, ?, ?, ?, ?)",
            (entry.path, blob, entry.language, entry.source_type, entry.lines, generation),
        )
        return int(cursor.lastrowid or 0)

    def add_parsed(self, file: int, parsed: ParsedFile, keys: Sequence[str]) -> Sequence[int]:
        """Store the parsed contents of a file; return the ids of the chunks in order."""
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
        self._db.executemany(
            "INSERT INTO registrations VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(file, r.kind, r.name, r.detail, r.help, r.handler, r.line) for r in parsed.registrations],
        )
        (first,) = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").fetchone()
        ids = range(first, first + len(keys))
        self._db.executemany(
            "INSERT INTO chunks (id, file, key, start_line, end_line, scope) VALUES (?, ?, ?, ?, ?, ?)",
            [(id_, file, key, c.start_line, c.end_line, c.scope)
             for id_, key, c in zip(ids, keys, parsed.chunks, strict=True)],
        )  # fmt: skip
        return ids

    def sweep(self, generations: Sequence[int], *, most: int = -1) -> set[str]:
        """Delete generations and rows that no other one needs; return the unused content keys.

        At most `most` files are deleted, and the others next time; -1 means all.
        """
        self._db.executemany("DELETE FROM generations WHERE id = ?", [(each,) for each in generations])
        dead = {
            row["id"]: row["blob"]
            for row in self._db.execute(
                f"SELECT id, blob FROM files WHERE removed < {FOREVER} AND NOT EXISTS (SELECT 1 FROM generations AS g"
                " WHERE files.added <= g.id AND files.removed > g.id) LIMIT ?",
                (most,),
            )
        }
        keys: set[str] = set()
        for file in dead:
            keys.update(row["key"] for row in self._db.execute("SELECT key FROM chunks WHERE file = ?", (file,)))
            for table in ("chunks", "symbols", "refs", "imports", "registrations"):
                self._db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))
            self._db.execute("DELETE FROM files WHERE id = ?", (file,))
        self._db.executemany(
            "DELETE FROM texts WHERE blob = :blob AND NOT EXISTS (SELECT 1 FROM files WHERE blob = :blob)",
            [{"blob": blob} for blob in set(dead.values())],
        )
        lookup = "SELECT 1 FROM chunks WHERE key = ? LIMIT 1"
        return {key for key in keys if self._db.execute(lookup, (key,)).fetchone() is None}
