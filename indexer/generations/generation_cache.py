"""Caches frequently read parts of a generation: its file list, and recently used files."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from threading import Lock

from cachetools import LRUCache

from indexer.calls.call_graph import CallGraph
from indexer.generations.repository_facts import describe_repository
from indexer.store.catalog import Catalog, FileRow
from indexer.types import FileEntry, RepositoryOverview, Symbol

MAX_CHARACTERS = 4_000_000  # of texts
MAX_SYMBOLS = 10_000  # of outlines; each takes some 500 bytes
_DEEPEST = 100  # nested folders; nobody looks further down, and each takes memory for its whole path


def count_folders(paths: Iterable[str]) -> Mapping[str, int]:
    """Count the paths in each folder and below it, except for the top."""
    counts: Counter[str] = Counter()
    for inside, files in Counter(path.rpartition("/")[0] for path in paths).items():
        steps = accumulate(inside.split("/", _DEEPEST)[:_DEEPEST], "{}/{}".format) if inside else ()
        counts.update(dict.fromkeys(steps, files))
    return counts


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedFile:
    """A file with its stored text, secrets masked; `starts` are the positions of its lines and of the end."""

    entry: FileEntry
    text: str
    starts: Sequence[int]

    def between(self, start_line: int, end_line: int) -> str:
        """Return some lines, the last one included."""
        last = min(end_line, len(self.starts) - 1)
        return self.text[self.starts[start_line - 1] : self.starts[last] - 1] if start_line <= last else ""


def make_cached_file(entry: FileEntry, text: str) -> CachedFile:
    """Find the beginnings of a text's lines."""
    starts = accumulate(map((1).__add__, map(len, text.split("\n"))), initial=0)
    return CachedFile(entry=entry, text=text, starts=array("L", starts))


@dataclass(frozen=True, kw_only=True, slots=True)
class FileListing:
    """All files by path, as stored and as displayed, and the number of files in and below each folder."""

    rows: tuple[FileRow, ...]
    entries: tuple[FileEntry, ...]
    folders: Mapping[str, int]


class GenerationCache:
    """Data shared by the readers of a generation; a generation does not change, so nothing in here becomes stale."""

    def __init__(self, catalog: Catalog, generation: int) -> None:
        self._generation = generation
        self.graph = CallGraph(catalog, generation)
        self._catalog = catalog
        # An entry larger than the whole cache counts as all of it, so it is kept alone.
        self._files: LRUCache[str, CachedFile] = LRUCache(
            MAX_CHARACTERS, lambda file: min(len(file.text), MAX_CHARACTERS)
        )
        self._outlines: LRUCache[str, tuple[Symbol, ...]] = LRUCache(
            MAX_SYMBOLS, lambda outline: min(len(outline) + 1, MAX_SYMBOLS)
        )
        self._overview: RepositoryOverview | None = None
        self._lock = Lock()

    def is_of(self, catalog: Catalog, generation: int) -> bool:
        """Whether this cache belongs to a generation of a catalog."""
        return self._catalog is catalog and self._generation == generation

    @cached_property
    def listing(self) -> FileListing:
        """All files."""
        rows = tuple(self._catalog.files(self._generation))
        entries = tuple(row.entry for row in rows)
        return FileListing(rows=rows, entries=entries, folders=count_folders(entry.path for entry in entries))

    def describe_repository(self, name: str) -> RepositoryOverview:
        """Describe the repository at a glance."""
        if self._overview is None:
            listing = self.listing
            blobs = {row.entry.path: row.blob for row in listing.rows}
            self._overview = describe_repository(
                name, listing.entries, listing.folders, lambda path: self._catalog.text(blobs[path])
            )
        return self._overview

    @property
    def listing_if_cached(self) -> FileListing | None:
        """All files, if cached."""
        return vars(self).get("listing")

    def row(self, path: str) -> FileRow | None:
        """One file."""
        return self._catalog.file(self._generation, path)

    def get_cached_file(self, path: str) -> CachedFile | None:
        """One file, if it is in the cache."""
        with self._lock:
            return self._files.get(path)

    def file(self, path: str) -> CachedFile | None:
        """One file; None if the generation has none of that path."""
        if (cached := self.get_cached_file(path)) is not None:
            return cached
        row = self.row(path)
        if row is None:
            return None
        file = make_cached_file(row.entry, self._catalog.text(row.blob))
        with self._lock:
            self._files[path] = file
        return file

    def get_cached_outline(self, path: str) -> tuple[Symbol, ...] | None:
        """The definitions of one file, if they are in the cache."""
        with self._lock:
            return self._outlines.get(path)

    def outline(self, path: str) -> tuple[Symbol, ...]:
        """Return the definitions of one file in order, outer ones first; none for an unknown path."""
        if (cached := self.get_cached_outline(path)) is not None:
            return cached
        outline = tuple(self._catalog.symbols(self._generation, path))
        with self._lock:
            self._outlines[path] = outline
        return outline
