"""The snapshot for searches: one generation's files, chunks, definitions, postings and vectors."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.checksums import append_checksum, open_checked
from indexer.search.bm25 import Bm25Index
from indexer.search.columns import (
    ChunkTable,
    DefinitionTable,
    FileTable,
    Ints,
    Longs,
    Rows,
    RowSelection,
    Tables,
    compute_offsets,
    select_rows,
)
from indexer.search.commit_history import CommitHistory, HistoryIndex
from indexer.search.path_traits import FLAGS
from indexer.search.postings import PostingsStack, Vocabulary
from indexer.search.segment import Floats, Segment

_FILE = "snapshot.npy"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One generation in memory, immutable; a refresh makes a new one that shares most segments.

    `order` has the rows of the present files, among those of all segments, by path. Everything else follows it:
    ordinals count files by path, and chunks and definitions by path and line, whatever segment has them. `frequencies`
    counts the chunks with each term, and `history` holds commit messages by file.
    """

    segments: tuple[Segment, ...]
    order: Rows
    frequencies: Longs
    terms: Vocabulary
    names: Vocabulary
    history: CommitHistory

    def warm(self) -> None:
        """Do the preparations of the first search ahead of time."""
        for name in _DERIVED:
            getattr(self, name)

    @cached_property
    def selection(self) -> RowSelection:
        """Return the existing rows by ordinal."""
        return RowSelection.of([segment.tables for segment in self.segments], self.order)

    @cached_property
    def tables(self) -> Tables:
        """Return the columns of existing rows by ordinal."""
        return select_rows([segment.tables for segment in self.segments], self.selection)

    @property
    def files(self) -> FileTable:
        """The files, by ordinal."""
        return self.tables.files

    @property
    def chunks(self) -> ChunkTable:
        """The chunks, by ordinal."""
        return self.tables.chunks

    @property
    def definitions(self) -> DefinitionTable:
        """The definitions, by ordinal."""
        return self.tables.definitions

    @cached_property
    def lexical(self) -> Bm25Index:
        """BM25 over the chunks."""
        stack = PostingsStack([segment.terms for segment in self.segments], self.selection.chunks)
        lengths = np.concatenate([segment.tables.chunks.tokens for segment in self.segments])
        return Bm25Index(self.terms, stack, lengths, self.frequencies)

    @cached_property
    def file_of_rows(self) -> Ints:
        """The file ordinal of each chunk row of the segments, -1 for one that is no longer there."""
        files = np.full(sum(segment.size for segment in self.segments), -1, dtype=np.int32)
        files[self.selection.chunks] = self.chunks.file
        return files

    @cached_property
    def definition_terms(self) -> PostingsStack:
        """The parts of each definition's name."""
        return PostingsStack([segment.definition_terms for segment in self.segments], self.selection.definitions)

    @cached_property
    def topic_terms(self) -> PostingsStack:
        """The topic words of each file."""
        return PostingsStack([segment.topic_terms for segment in self.segments], self.selection.files)

    @cached_property
    def folder_terms(self) -> PostingsStack:
        """The words of each file's folders."""
        return PostingsStack([segment.folder_terms for segment in self.segments], self.selection.files)

    @cached_property
    def definition_weights(self) -> NDArray[np.float64]:
        """The summed weight of each definition's name, never zero."""
        return _replace_zeros(self.definition_terms.weight_sums(self.lexical.idf))

    @cached_property
    def topic_weights(self) -> NDArray[np.float64]:
        """The summed weight of each file's topic, never zero."""
        return _replace_zeros(self.topic_terms.weight_sums(self.lexical.idf))

    @cached_property
    def history_index(self) -> HistoryIndex:
        """The words of commits about the present files."""
        return HistoryIndex(self.history, self.files.paths.tolist())

    @cached_property
    def log_rank(self) -> Floats:
        """The logarithm of one more than each chunk's rank."""
        return np.log1p(self.chunks.rank)

    @cached_property
    def flags(self) -> dict[str, NDArray[np.bool_]]:
        """The traits as one array a kind; `plain` is text that is neither code, documentation nor configuration."""
        flags = {name: (self.files.traits >> bit & 1).astype(bool) for bit, name in enumerate(FLAGS)}
        return flags | {"plain": (self.files.languages == "text") & ~flags["doc"] & ~flags["config"]}

    def find_definitions(self, name: str) -> Rows:
        """Return the ordinals of the definitions with a folded name."""
        number = self.names.number(name)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.definitions.names == number)

    def cosines(self, query: Floats) -> NDArray[np.float64]:
        """Return the cosine of each chunk's vector with a query's."""
        # A matrix product rounds a row by where it lies, and equal vectors would no longer tie; this does not.
        cosines = np.concatenate([np.einsum("ij,j->i", segment.vectors, query) for segment in self.segments])
        return cosines[self.selection.chunks].astype(np.float64)

    def vectors(self, ordinals: Rows) -> Floats:
        """The vectors of some chunks."""
        return gather_rows([segment.vectors for segment in self.segments], self.selection.chunks[ordinals])

    def save(self, folder: Path, beside: Path | None = None) -> None:
        """Write everything into a new folder.

        Segments that the folder of an earlier generation, `beside`, already has are linked if
        possible, else written.
        """
        folder.mkdir(parents=True)
        for segment in self.segments:
            if beside is None or not _link_file(beside / segment.file, folder / segment.file):
                segment.save(folder)
        names = json.dumps([segment.name for segment in self.segments]).encode()
        with (folder / _FILE).open("wb") as file:
            for array in (np.frombuffer(names, dtype=np.uint8), self.order, self.frequencies):
                np.save(file, array)
        append_checksum(folder / _FILE)
        self.history.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Snapshot:
        """Load a saved snapshot; OSError, ValueError, KeyError, TypeError or EOFError if it is damaged."""
        with open_checked(folder / _FILE) as file:
            names, order, frequencies = (np.load(file, allow_pickle=False) for _ in range(3))
        segments = tuple(Segment.load(folder, name) for name in json.loads(names.tobytes()))
        return cls(
            segments=segments,
            order=order,
            frequencies=frequencies,
            terms=Vocabulary(chain.from_iterable(segment.new_terms for segment in segments)),
            names=Vocabulary(chain.from_iterable(segment.new_names for segment in segments)),
            history=CommitHistory.load(folder),
        )


_DERIVED = tuple(name for name, part in vars(Snapshot).items() if isinstance(part, cached_property))


def _link_file(source: Path, target: Path) -> bool:
    """Give a file a second name that outlives the first; False if the file is missing or the disk has no links."""
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def gather_rows(blocks: list[Floats], rows: Rows) -> Floats:
    """Copy rows from several consecutively numbered blocks."""
    found = np.empty((len(rows), blocks[0].shape[1]), dtype=np.float32)
    for block, offset in zip(blocks, compute_offsets([len(block) for block in blocks]), strict=True):
        inside = (rows >= offset) & (rows < offset + len(block))
        found[inside] = block[rows[inside] - offset]
    return found


def _replace_zeros(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(sums > 0, sums, 1.0)
