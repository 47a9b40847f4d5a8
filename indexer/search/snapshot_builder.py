"""Builds a snapshot from the remaining segments of the previous one, and a segment of new files."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.search.columns import (
    ChunkTable,
    DefinitionTable,
    FileTable,
    Longs,
    Rows,
    Strings,
    Tables,
    compute_offsets,
    make_string_column,
)
from indexer.search.commit_history import CommitHistory, make_empty_history
from indexer.search.path_traits import get_folder, get_topic, read_path_traits
from indexer.search.postings import PostingsBuilder, Vocabulary, sum_by_key
from indexer.search.segment import Floats, Segment
from indexer.search.snapshot import Snapshot
from indexer.text.tokens import Bag, tokenize, tokenize_identifier
from indexer.types import FileEntry, ParsedFile, Symbol

_TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "module", "type"})

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass
class _Columns:
    """The numbers of the added files, chunks and definitions, in the form of `indexer.search.columns`."""

    paths: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    file_ids: array[int] = field(default_factory=lambda: array("q"))
    file_traits: array[int] = field(default_factory=lambda: array("B"))
    file_chunks: array[int] = field(default_factory=lambda: array("i"))
    file_definitions: array[int] = field(default_factory=lambda: array("i"))
    chunk_ids: array[int] = field(default_factory=lambda: array("q"))
    chunk_start: array[int] = field(default_factory=lambda: array("i"))
    chunk_end: array[int] = field(default_factory=lambda: array("i"))
    definition_names: array[int] = field(default_factory=lambda: array("i"))
    definition_chunk: array[int] = field(default_factory=lambda: array("i"))
    definition_is_type: array[int] = field(default_factory=lambda: array("b"))
    definition_lines: array[int] = field(default_factory=lambda: array("i"))

    def tables(self, tokens: Longs) -> Tables:
        """The columns as arrays; `tokens` has the length of each chunk."""
        chunks = _make_array(self.file_chunks, np.int32)
        file = np.repeat(np.arange(len(chunks), dtype=np.int32), chunks)
        return Tables(
            files=FileTable(
                ids=_make_array(self.file_ids, np.int64),
                paths=make_string_column(self.paths),
                languages=make_string_column(self.languages),
                traits=_make_array(self.file_traits, np.uint8),
                tokens=np.bincount(file, weights=tokens, minlength=len(chunks)).astype(np.int64),
                chunks=chunks,
                definitions=_make_array(self.file_definitions, np.int32),
            ),
            chunks=ChunkTable(
                ids=_make_array(self.chunk_ids, np.int64),
                file=file,
                start=_make_array(self.chunk_start, np.int32),
                end=_make_array(self.chunk_end, np.int32),
                tokens=tokens,
                rank=np.ones(len(tokens), dtype=np.float32),
            ),
            definitions=DefinitionTable(
                names=_make_array(self.definition_names, np.int32),
                chunk=_make_array(self.definition_chunk, np.int32),
                is_type=_make_array(self.definition_is_type, np.bool_),
                lines=_make_array(self.definition_lines, np.int32),
            ),
        )


class SnapshotBuilder:
    """Collects parsed files, then builds the snapshot of all kept and added ones."""

    def __init__(self, previous: Snapshot | None, *, dimensions: int) -> None:
        self._previous = previous or make_empty_snapshot(dimensions)
        self._new = _Columns()
        self._names = self._previous.names
        self._terms = PostingsBuilder(self._previous.terms)
        self._definition_terms = PostingsBuilder(self._previous.terms)
        self._topic_terms = PostingsBuilder(self._previous.terms)
        self._folder_terms = PostingsBuilder(self._previous.terms)

    @property
    def chunks_added(self) -> int:
        """The number of chunks added."""
        return len(self._new.chunk_ids)

    @property
    def words(self) -> int:
        """The number of distinct words and names, including the previous snapshot's."""
        return len(self._previous.terms) + len(self._names)

    @property
    def postings(self) -> int:
        """The number of words of chunks, including the previous snapshot's."""
        return self._terms.entries + sum(len(segment.terms.docs) for segment in self._previous.segments)

    def add(
        self, file_id: int, entry: FileEntry, parsed: ParsedFile, bags: Sequence[Bag], chunk_ids: Sequence[int]
    ) -> None:
        """Add one file with its catalog id, and the bags of tokens and the catalog ids of its chunks."""
        new = self._new
        new.file_ids.append(file_id)
        new.paths.append(entry.path)
        new.languages.append(entry.language)
        new.file_traits.append(read_path_traits(entry.path).pack_flags())
        new.file_chunks.append(len(parsed.chunks))
        new.file_definitions.append(len(parsed.symbols))
        topic_tokens = set(tokenize(get_topic(entry.path)))
        self._topic_terms.add(topic_tokens)
        self._folder_terms.add(set(tokenize(get_folder(entry.path))) - topic_tokens)
        first = len(new.chunk_ids)
        for chunk, bag, chunk_id in zip(parsed.chunks, bags, chunk_ids, strict=True):
            new.chunk_ids.append(chunk_id)
            new.chunk_start.append(chunk.start_line)
            new.chunk_end.append(chunk.end_line)
            self._terms.add(bag)
        starts = [chunk.start_line for chunk in parsed.chunks]
        chunks = [first + max(bisect_right(starts, symbol.start_line) - 1, 0) for symbol in parsed.symbols]
        for place in sorted(range(len(chunks)), key=chunks.__getitem__):
            self._add_definition(parsed.symbols[place], chunks[place])

    def _add_definition(self, symbol: Symbol, chunk: int) -> None:
        self._new.definition_names.extend(self._names.add((symbol.name.lower(),)))
        self._new.definition_chunk.append(chunk)
        self._new.definition_is_type.append(symbol.kind in _TYPE_KINDS)
        self._new.definition_lines.append(symbol.end_line - symbol.start_line + 1)
        # The name as a whole is left out beside its parts: it would count everything twice.
        tokens = set(tokenize_identifier(symbol.name))
        self._definition_terms.add((tokens - {symbol.name.lower().strip("_$")}) or tokens)

    def build(self, removed: frozenset[int], vectors: Floats, history: CommitHistory | None = None) -> Snapshot:
        """Build the snapshot without the `removed` catalog file ids.

        `vectors` has a row for each chunk added, of numbers that half precision has. The rank of chunks that stay is
        kept; new ones begin at the average, which is 1. Without a `history` that of the snapshot before stays.
        """
        old, terms = self._previous, self._terms.build()
        new = Segment(
            tables=self._new.tables(terms.lengths()),
            new_terms=old.terms.since(sum(len(segment.new_terms) for segment in old.segments)),
            new_names=old.names.since(sum(len(segment.new_names) for segment in old.segments)),
            terms=terms,
            terms_by_chunk=self._terms.build_term_lists(),
            definition_terms=self._definition_terms.build(),
            topic_terms=self._topic_terms.build(),
            folder_terms=self._folder_terms.build(),
            vectors=vectors,
        )
        gone = np.isin(old.files.ids, np.fromiter(removed, dtype=np.int64))
        segments = [segment for segment in (*old.segments, new) if segment.is_needed]
        return Snapshot(
            segments=tuple(segments) or (new,),
            order=_order_files(old, ~gone, new.tables.files.paths),
            frequencies=_count_frequencies(old, gone, new, len(old.terms)),
            terms=old.terms,
            names=old.names,
            history=old.history if history is None else history,
        )


def _order_files(old: Snapshot, kept: NDArray[np.bool_], paths: Strings) -> Rows:
    """Return the file rows of a snapshot in which some files stay and those at `paths` have the next rows."""
    by_path = np.argsort(paths, kind="stable")
    places = np.searchsorted(old.files.paths[kept], paths[by_path])
    return np.insert(old.order[kept], places, by_path + sum(len(segment.tables.files.ids) for segment in old.segments))


def _count_frequencies(old: Snapshot, gone: NDArray[np.bool_], new: Segment, terms: int) -> Longs:
    """Count the chunks with each term, updating only for added and removed ones."""
    frequencies = sum_by_key(new.terms_by_chunk.terms, None, terms).astype(np.int64)
    known = len(old.frequencies)
    frequencies[:known] += old.frequencies
    rows = old.selection.chunks[gone[old.chunks.file]]
    for segment, offset in zip(old.segments, compute_offsets([segment.size for segment in old.segments]), strict=True):
        inside = rows[(rows >= offset) & (rows < offset + segment.size)] - offset
        frequencies[:known] -= np.bincount(segment.terms_by_chunk.of(inside), minlength=known)
    return frequencies


def make_empty_snapshot(dimensions: int) -> Snapshot:
    """Make an empty snapshot."""
    terms = PostingsBuilder(Vocabulary())
    nothing = terms.build()
    segment = Segment(
        tables=_Columns().tables(nothing.lengths()),
        new_terms=(),
        new_names=(),
        terms=nothing,
        terms_by_chunk=terms.build_term_lists(),
        definition_terms=nothing,
        topic_terms=nothing,
        folder_terms=nothing,
        vectors=np.empty((0, dimensions), dtype=np.float32),
    )
    none = np.empty(0, dtype=np.int64)
    return Snapshot(
        segments=(segment,),
        order=none,
        frequencies=none,
        terms=Vocabulary(),
        names=Vocabulary(),
        history=make_empty_history(),
    )


def _make_array(values: array[int], kind: type[Scalar]) -> NDArray[Scalar]:
    return np.array(values, dtype=np.dtype(values.typecode)).astype(kind)
