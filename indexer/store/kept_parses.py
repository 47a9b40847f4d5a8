"""Keeps the parsers' results of a long refresh until it is over, so that a killed one need not start again."""

from __future__ import annotations

import logging
import sqlite3
import time
import zlib
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

KEEP_AFTER_SECONDS = 10.0  # of a refresh; what was parsed before is soon parsed again
COMMIT_SECONDS = 1.0
_LAYOUT = """CREATE TABLE IF NOT EXISTS parses (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, reply BLOB NOT NULL) STRICT"""


class KeptParses:
    """The replies of parsers, by request. Only the sole writer of an index may open it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begins = time.monotonic() + KEEP_AFTER_SECONDS
        self._committed = time.monotonic()
        self._db: sqlite3.Connection | None = None
        if path.exists():  # a refresh was killed, and so may this one be, however soon
            self._begins = 0.0
            self._open()

    @property
    def count(self) -> int:
        """The number of kept replies: as it grows, a repeatedly killed refresh still makes progress."""
        if self._db is None:
            return 0
        try:
            return int(self._db.execute("SELECT coalesce(max(id), 0) FROM parses").fetchone()[0])
        except sqlite3.DatabaseError as error:
            self._start_over(error)
            return 0

    def find(self, key: str) -> bytes | None:
        """Return the reply stored under a key."""
        if self._db is None:
            return None
        try:
            row = self._db.execute("SELECT reply FROM parses WHERE key = ?", (key,)).fetchone()
            return zlib.decompress(row[0]) if row is not None else None
        except (sqlite3.DatabaseError, zlib.error) as error:
            self._start_over(error)
            return None

    def keep(self, key: str, reply: bytes) -> None:
        """Store a reply, once the refresh has taken some time."""
        now = time.monotonic()
        if now < self._begins:
            return
        try:
            if self._db is None:
                self._open()
            if self._db is not None:
                self._db.execute(
                    "INSERT OR IGNORE INTO parses (key, reply) VALUES (?, ?)", (key, zlib.compress(reply, 1))
                )
                if now - self._committed > COMMIT_SECONDS:
                    self._db.commit()
                    self._committed = now
        except sqlite3.DatabaseError as error:
            self._start_over(error)

    def close(self) -> None:
        """Write unwritten replies."""
        if self._db is not None:
            with suppress(sqlite3.DatabaseError):
                self._db.commit()
            self._db.close()
            self._db = None

    def drop(self) -> None:
        """Delete everything: the refresh is over."""
        self.close()
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.unlink(missing_ok=True)

    def _open(self) -> None:
        try:
            self._db = sqlite3.connect(self._path, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=OFF")  # a killed process loses nothing, and a crashed machine little
            self._db.execute(_LAYOUT)
        except sqlite3.DatabaseError as error:
            self._start_over(error)

    def _start_over(self, error: Exception) -> None:
        """Continue without stored replies if they cannot be read or written: files are parsed again."""
        log.warning("%s cannot be used (%s), so what it held is parsed again", self._path, error)
        self._begins = float("inf")
        with suppress(OSError, sqlite3.DatabaseError):
            self.drop()
