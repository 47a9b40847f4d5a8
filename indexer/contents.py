"""The files of one generation as they are read again and again: the list of them, and the texts used last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from indexer.calls.graph import CallGraph
from indexer.catalog import Catalog, FileRow
from indexer.models import FileEntry
from indexer.recent import Recent

MAX_TEXTS = 64


def counted_folders(paths: Iterable[str]) -> Mapping[str, int]:
    """Count the paths in each folder and below it, the top left out."""
    counts: Counter[str] = Counter()
    for inside, files in Counter(path.rpartition("/")[0] for path in paths).items():
        steps = accumulate(inside.split("/"), "{}/{}".format) if inside else ()
        counts.update(dict.fromkeys(steps, files))
    return counts


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file with its stored lines, secrets masked."""

    entry: FileEntry
    lines: Sequence[str]


class Contents:
    """What the readers of a generation share; it does not change, so nothing of it is ever read twice for nothing."""

    def __init__(self, catalog: Catalog, generation: int) -> None:
        self.generation = generation
        self.graph = CallGraph(catalog, generation)
        self._catalog = catalog
        self._files: Recent[str, File] = Recent(MAX_TEXTS)

    @cached_property
    def rows(self) -> tuple[FileRow, ...]:
        """All files, by path."""
        return tuple(self._catalog.files(self.generation))

    @cached_property
    def entries(self) -> tuple[FileEntry, ...]:
        """All files as others see them, by path."""
        return tuple(row.entry for row in self.rows)

    @cached_property
    def folders(self) -> Mapping[str, int]:
        """How many files lie in each folder and below it."""
        return counted_folders(row.entry.path for row in self.rows)

    def row(self, path: str) -> FileRow | None:
        """One file."""
        return self._catalog.file(self.generation, path)

    def at_hand(self, path: str) -> File | None:
        """One file, if it was read lately; takes no time."""
        return self._files.get(path)

    def file(self, path: str) -> File | None:
        """One file; None if the generation has none of that path."""
        if (known := self.at_hand(path)) is not None:
            return known
        row = self.row(path)
        if row is None:
            return None
        return self._files.keep(path, File(entry=row.entry, lines=self._catalog.text(row.blob).split("\n")))
