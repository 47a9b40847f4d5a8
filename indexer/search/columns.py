"""The columns of files, chunks and definitions, and arithmetic with their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Strings = NDArray[np.object_]

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTable:
    """Files: catalog ids, language names, path traits (see `path_traits`), and sizes."""

    ids: Longs
    paths: Strings
    languages: Strings
    traits: NDArray[np.uint8]
    tokens: Longs
    chunks: Ints
    definitions: Ints


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkTable:
    """Chunks by file and first line: catalog ids, rows of files, 1-based inclusive lines, tokens, and centrality."""

    ids: Longs
    file: Ints
    start: Ints
    end: Ints
    tokens: Longs
    rank: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionTable:
    """Definitions by chunk: numbers of folded names, rows of chunks, and ranking data."""

    names: Ints
    chunk: Ints
    is_type: NDArray[np.bool_]
    lines: Ints


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """Three related tables: the chunks and the definitions of a file are runs of rows, in its order."""

    files: FileTable
    chunks: ChunkTable
    definitions: DefinitionTable


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSelection:
    """Rows of stacked tables; those of chunks and definitions follow their files."""

    files: Rows
    chunks: Rows
    definitions: Rows

    @classmethod
    def of(cls, stacked: Sequence[Tables], files: Rows) -> RowSelection:
        """Select some files, in that order, and their contents."""
        chunks = np.concatenate([tables.files.chunks for tables in stacked])
        definitions = np.concatenate([tables.files.definitions for tables in stacked])
        return cls(
            files=files,
            chunks=expand_spans(compute_starts(chunks)[files], chunks[files]),
            definitions=expand_spans(compute_starts(definitions)[files], definitions[files]),
        )


def select_rows(stacked: Sequence[Tables], selection: RowSelection) -> Tables:
    """Line up the selected rows of stacked tables."""
    files = _take_rows([tables.files for tables in stacked], selection.files)
    file = np.repeat(np.arange(len(files.ids), dtype=np.int32), files.chunks)
    sizes = [len(tables.chunks.ids) for tables in stacked]
    shifted = [tables.definitions.chunk + by for tables, by in zip(stacked, compute_offsets(sizes), strict=True)]
    chunk = invert_rows(selection.chunks, sum(sizes))[np.concatenate(shifted)[selection.definitions]]
    return Tables(
        files=files,
        chunks=_take_rows([tables.chunks for tables in stacked], selection.chunks, file=file),
        definitions=_take_rows([tables.definitions for tables in stacked], selection.definitions, chunk=chunk),
    )


Table = TypeVar("Table", FileTable, ChunkTable, DefinitionTable)


def _take_rows(stacked: Sequence[Table], rows: Rows, **known: Any) -> Table:
    """Take some rows of every column except known ones."""
    names = [part.name for part in fields(stacked[0]) if part.name not in known]
    columns = {name: np.concatenate([getattr(table, name) for table in stacked])[rows] for name in names}
    return type(stacked[0])(**columns, **known)


def make_string_column(values: Sequence[str]) -> Strings:
    """Make a column of texts."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def compute_offsets(sizes: Sequence[int]) -> list[int]:
    """Compute the offset of each of several tables."""
    return [0, *accumulate(sizes)][:-1]


def compute_starts(counts: NDArray[Any]) -> Rows:
    """Compute the start of each of several consecutive runs."""
    starts: Rows = np.cumsum(counts, dtype=np.int64) - counts
    return starts


def expand_spans(starts: NDArray[Any], counts: NDArray[Any]) -> Rows:
    """Return the rows of several consecutive runs."""
    shifts = np.repeat(starts - compute_starts(counts), counts)
    return shifts + np.arange(len(shifts), dtype=np.int64)


def invert_rows(rows: NDArray[Any], size: int) -> NDArray[np.int32]:
    """Return the position of each of `size` rows in a list, -1 for a missing one."""
    places = np.full(size, -1, dtype=np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return places
