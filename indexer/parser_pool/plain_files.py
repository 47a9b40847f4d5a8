"""Remembers contents that overloaded a grammar, so that they are read as plain text everywhere from then on."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

from indexer.store.data_folder import map_storage_errors
from indexer.types import PlainReason

log = logging.getLogger(__name__)

FILE = "plain_files.sqlite"
PLAIN_REASONS: Mapping[PlainReason, str] = {
    "time": "its parser took too long",
    "memory": "its parser needed too much memory",
    "crash": "its parser crashed",
    "encoding": "its encoding is unknown, so some characters may be wrong; name it in .gitattributes: encoding=...",
}
_MAX_FILES = 10_000  # the newest; whatever is forgotten is merely tried again
_LAYOUT = """CREATE TABLE IF NOT EXISTS plain_files (
    blob TEXT NOT NULL, grammar TEXT NOT NULL, reason TEXT NOT NULL, noted_at REAL NOT NULL,
    PRIMARY KEY (blob, grammar)) STRICT"""

Reasons = Mapping[str, PlainReason]


class PlainFiles:
    """By git's content id and by grammar, for all repositories of a data folder. Opened for each use."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def load(self) -> dict[str, dict[str, PlainReason]]:
        """Return the reasons by contents and grammar."""
        found: dict[str, dict[str, PlainReason]] = {}
        if self._path.exists():
            self._drop_damaged()
            with self._open_database() as db:
                for blob, grammar, reason in db.execute("SELECT blob, grammar, reason FROM plain_files"):
                    found.setdefault(blob, {})[grammar] = cast("PlainReason", reason)
        return found

    def _drop_damaged(self) -> None:
        """Delete a damaged file: its contents can be found out again."""
        with map_storage_errors(self._path):
            try:
                with closing(sqlite3.connect(self._path, timeout=10)) as db:
                    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
            except sqlite3.OperationalError:  # it cannot be read now, which tells nothing of what is in it
                raise
            except sqlite3.DatabaseError as error:
                verdict = str(error)
            if verdict != "ok":
                log.warning("%s was damaged (%s) and is started over", self._path, " ".join(verdict.split()))
                self._path.unlink(missing_ok=True)

    def note(self, blob: str, grammar: str, reason: PlainReason) -> None:
        """Record contents on which a grammar failed, replacing entries of other versions."""
        self.forget(blob, grammar)
        with self._open_database() as db:
            db.execute("INSERT INTO plain_files VALUES (?, ?, ?, ?)", (blob, grammar, reason, time.time()))
            db.execute(
                "DELETE FROM plain_files WHERE noted_at < "
                "(SELECT noted_at FROM plain_files ORDER BY noted_at DESC LIMIT 1 OFFSET ?)",
                (_MAX_FILES - 1,),
            )

    def forget(self, blob: str, grammar: str) -> None:
        """Forget contents that no longer trouble a grammar, in any version."""
        with self._open_database() as db:
            db.execute(
                "DELETE FROM plain_files WHERE blob = ? AND (grammar = ? OR grammar LIKE ? || ' %')",
                (blob, grammar, grammar.partition(" ")[0]),
            )

    @contextmanager
    def _open_database(self) -> Iterator[sqlite3.Connection]:
        with map_storage_errors(self._path), closing(sqlite3.connect(self._path, timeout=10)) as db, db:
            db.execute(_LAYOUT)
            yield db
