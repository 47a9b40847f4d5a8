"""The columns of files, chunks and definitions, as a segment stores them and as a snapshot lines them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.rows import Rows, compute_offsets, compute_starts, expand_spans, invert_rows

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Strings = NDArray[np.object_]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTable:
    """Files: catalog ids, language names, what the paths tell (see `indexer.paths`), and how much is in each."""

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
    """Definitions by the chunk they begin in: numbers of folded names, rows of chunks, and what ranking asks."""

    names: Ints
    chunk: Ints
    is_type: NDArray[np.bool_]
    lines: Ints


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """Three tables that belong together: the chunks and the definitions of a file are runs of rows, in its order."""

    files: FileTable
    chunks: ChunkTable
    definitions: DefinitionTable


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSelection:
    """Rows of stacked tables, those of chunks and definitions as the files that they belong to go."""

    files: Rows
    chunks: Rows
    definitions: Rows

    @classmethod
    def of(cls, stacked: Sequence[Tables], files: Rows) -> RowSelection:
        """Select some files, in that order, and what is in them."""
        chunks = np.concatenate([each.files.chunks for each in stacked])
        definitions = np.concatenate([each.files.definitions for each in stacked])
        return cls(
            files=files,
            chunks=expand_spans(compute_starts(chunks)[files], chunks[files]),
            definitions=expand_spans(compute_starts(definitions)[files], definitions[files]),
        )


def select_rows(stacked: Sequence[Tables], selection: RowSelection) -> Tables:
    """Line up the selected rows of stacked tables."""
    files = _take_rows([each.files for each in stacked], selection.files)
    file = np.repeat(np.arange(len(files.ids), dtype=np.int32), files.chunks)
    sizes = [len(each.chunks.ids) for each in stacked]
    shifted = [each.definitions.chunk + by for each, by in zip(stacked, compute_offsets(sizes), strict=True)]
    chunk = invert_rows(selection.chunks, sum(sizes))[np.concatenate(shifted)[selection.definitions]]
    return Tables(
        files=files,
        chunks=_take_rows([each.chunks for each in stacked], selection.chunks, file=file),
        definitions=_take_rows([each.definitions for each in stacked], selection.definitions, chunk=chunk),
    )


Table = TypeVar("Table", FileTable, ChunkTable, DefinitionTable)


def _take_rows(stacked: Sequence[Table], rows: Rows, **known: Any) -> Table:
    """Take some rows of every column but of those that are known."""
    names = [part.name for part in fields(stacked[0]) if part.name not in known]
    columns = {name: np.concatenate([getattr(table, name) for table in stacked])[rows] for name in names}
    return type(stacked[0])(**columns, **known)


def make_string_column(values: Sequence[str]) -> Strings:
    """A column of texts."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
