"""The files of one generation as they are read again and again: the list of them, and the texts used last."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from threading import Lock

from indexer.catalog import Catalog, FileRow
from indexer.models import FileEntry

MAX_TEXTS = 64


class Contents:
    """What the readers of a generation share; it does not change, so nothing of it is ever read twice for nothing."""

    def __init__(self, catalog: Catalog, generation: int) -> None:
        self.generation = generation
        self._catalog = catalog
        self._texts: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def rows(self) -> tuple[FileRow, ...]:
        """All files, by path."""
        return tuple(self._catalog.files(self.generation))

    @cached_property
    def entries(self) -> tuple[FileEntry, ...]:
        """All files as others see them, by path."""
        return tuple(row.entry for row in self.rows)

    def row(self, path: str) -> FileRow | None:
        """One file."""
        return self._catalog.file(self.generation, path)

    def lines(self, row: FileRow) -> list[str]:
        """The stored lines of a file, secrets masked; they are shared, and not to be changed."""
        with self._lock:
            known = self._texts.get(row.blob)
            if known is not None:
                self._texts.move_to_end(row.blob)
                return known
        lines = self._catalog.text(row.blob).split("\n")
        with self._lock:
            self._texts[row.blob] = lines
            while len(self._texts) > MAX_TEXTS:
                self._texts.popitem(last=False)
        return lines
