"""Puts a snapshot together: what stays of the one before, and what was parsed since."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.models import Chunk, FileEntry, ParsedFile, Symbol
from indexer.paths import folder, topic
from indexer.postings import Bag, Postings, PostingsBuilder, Vocabulary
from indexer.snapshot import ChunkTable, DefinitionTable, FileTable, Floats, Ints, Snapshot
from indexer.tokens import identifier_tokens, path_tokens, tokenize

_PATH_WEIGHT = 3  # how often the path's tokens are counted in each of a file's chunks
_NAME_WEIGHT = 2  # and how often those of the definitions and the scope
_TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "module", "type"})

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass
class _Columns:
    """New rows in the order in which they came; ordinals are the rows' places here until the build sorts them."""

    file_ids: array[int] = field(default_factory=lambda: array("q"))
    entries: list[FileEntry] = field(default_factory=list)
    chunk_ids: array[int] = field(default_factory=lambda: array("q"))
    chunk_file: array[int] = field(default_factory=lambda: array("i"))
    chunk_start: array[int] = field(default_factory=lambda: array("i"))
    chunk_end: array[int] = field(default_factory=lambda: array("i"))
    names: list[str] = field(default_factory=list)
    definition_chunk: array[int] = field(default_factory=lambda: array("i"))
    definition_is_type: array[int] = field(default_factory=lambda: array("b"))
    definition_lines: array[int] = field(default_factory=lambda: array("i"))


def bags_of(path: str, parsed: ParsedFile) -> tuple[Bag, ...]:
    """Count the tokens of each chunk of a file, with those of its path, its scope and the names it defines."""
    of_path = path_tokens(path) * _PATH_WEIGHT
    return tuple(
        Counter(tokenize(chunk.text) + of_path + _name_tokens(chunk) * _NAME_WEIGHT) for chunk in parsed.chunks
    )


def _name_tokens(chunk: Chunk) -> list[str]:
    return [token for name in chunk.names for token in identifier_tokens(name)] + tokenize(chunk.scope)


class Assembly:
    """Collects parsed files, then builds the snapshot of all that is kept and added."""

    def __init__(self, previous: Snapshot | None, *, dimensions: int) -> None:
        self._previous = previous or empty_snapshot(dimensions)
        self._vocabulary = self._previous.vocabulary.copy()
        self._new = _Columns()
        self._terms = PostingsBuilder(self._vocabulary)
        self._definition_terms = PostingsBuilder(self._vocabulary)
        self._topic_terms = PostingsBuilder(self._vocabulary)
        self._folder_terms = PostingsBuilder(self._vocabulary)

    @property
    def chunks_added(self) -> int:
        """How many chunks have been added."""
        return len(self._new.chunk_ids)

    def add(
        self, file_id: int, entry: FileEntry, parsed: ParsedFile, bags: Sequence[Bag], chunk_ids: Sequence[int]
    ) -> None:
        """Add one file with its catalog id, and the bags of tokens and the catalog ids of its chunks."""
        file = len(self._new.entries)
        self._new.file_ids.append(file_id)
        self._new.entries.append(entry)
        self._add_path(file, entry.path)
        first = len(self._new.chunk_ids)
        self._add_chunks(file, parsed, bags, chunk_ids)
        starts = [chunk.start_line for chunk in parsed.chunks]
        for symbol in parsed.symbols:
            self._add_definition(symbol, first + max(bisect_right(starts, symbol.start_line) - 1, 0))

    def _add_path(self, file: int, path: str) -> None:
        topic_tokens = set(tokenize(topic(path)))
        self._topic_terms.add(file, topic_tokens)
        self._folder_terms.add(file, set(tokenize(folder(path))) - topic_tokens)

    def _add_chunks(self, file: int, parsed: ParsedFile, bags: Sequence[Bag], chunk_ids: Sequence[int]) -> None:
        for chunk, bag, chunk_id in zip(parsed.chunks, bags, chunk_ids, strict=True):
            ordinal = len(self._new.chunk_ids)
            self._new.chunk_ids.append(chunk_id)
            self._new.chunk_file.append(file)
            self._new.chunk_start.append(chunk.start_line)
            self._new.chunk_end.append(chunk.end_line)
            self._terms.add(ordinal, bag)

    def _add_definition(self, symbol: Symbol, chunk: int) -> None:
        definition = len(self._new.names)
        self._new.names.append(symbol.name.lower())
        self._new.definition_chunk.append(chunk)
        self._new.definition_is_type.append(symbol.kind in _TYPE_KINDS)
        self._new.definition_lines.append(symbol.end_line - symbol.start_line + 1)
        self._definition_terms.add(definition, _name_parts(symbol.name))

    def build(self, removed: frozenset[int], vectors: Floats) -> Snapshot:
        """Build the snapshot without the `removed` catalog file ids; `vectors` has a row for each chunk added.

        The rank of chunks that stay is kept; new ones begin at the average, which is 1.
        """
        old, new = self._previous, self._new
        files = _Joined.files(old, new.entries, new.file_ids, removed)
        chunks = _Joined.chunks(old, new, files)
        definitions = _Joined.definitions(old, new, chunks)
        start = _joined(old.chunks.start, new.chunk_start)[chunks.order]
        end = _joined(old.chunks.end, new.chunk_end)[chunks.order]
        names = [*old.definitions.names, *new.names]
        paths = [*old.files.paths, *(entry.path for entry in new.entries)]
        languages = [*old.files.languages, *(entry.language for entry in new.entries)]
        return Snapshot(
            files=FileTable(
                ids=_joined(old.files.ids, new.file_ids)[files.order],
                paths=tuple(paths[each] for each in files.order),
                languages=tuple(languages[each] for each in files.order),
            ),
            chunks=ChunkTable(
                ids=_joined(old.chunks.ids, new.chunk_ids)[chunks.order],
                file=files.numbers[_shifted(old.chunks.file, new.chunk_file, len(old.files.paths))[chunks.order]],
                start=start,
                end=end,
            ),
            definitions=DefinitionTable(
                names=tuple(names[each] for each in definitions.order),
                chunk=chunks.numbers[
                    _shifted(old.definitions.chunk, new.definition_chunk, len(old.chunks.ids))[definitions.order]
                ],
                is_type=_joined(old.definitions.is_type, new.definition_is_type)[definitions.order].astype(bool),
                lines=_joined(old.definitions.lines, new.definition_lines)[definitions.order],
            ),
            vocabulary=self._vocabulary,
            terms=chunks.postings(old.terms, self._terms),
            definition_terms=definitions.postings(old.definition_terms, self._definition_terms),
            topic_terms=files.postings(old.topic_terms, self._topic_terms),
            folder_terms=files.postings(old.folder_terms, self._folder_terms),
            vectors=np.concatenate((old.vectors, vectors.astype(np.float16)))[chunks.order],
            rank=np.concatenate((old.rank, np.ones(len(new.chunk_ids), dtype=np.float32)))[chunks.order],
            known_traits=dict(zip(old.files.paths, old.traits, strict=True)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Joined:
    """Old rows and new ones behind them, put in order: `order` lists the places that stay, `numbers` inverts it."""

    old: int
    order: NDArray[np.int64]
    numbers: Ints

    @classmethod
    def of(cls, old: int, total: int, order: NDArray[np.int64]) -> _Joined:
        numbers = np.full(total, -1, dtype=np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        return cls(old=old, order=order, numbers=numbers)

    @classmethod
    def files(cls, old: Snapshot, entries: list[FileEntry], ids: array[int], removed: frozenset[int]) -> _Joined:
        paths = [*old.files.paths, *(entry.path for entry in entries)]
        all_ids = _joined(old.files.ids, ids).tolist()
        kept = [place for place in range(len(paths)) if all_ids[place] not in removed]
        order = np.array(sorted(kept, key=paths.__getitem__), dtype=np.int64)
        return cls.of(len(old.files.paths), len(paths), order)

    @classmethod
    def chunks(cls, old: Snapshot, new: _Columns, files: _Joined) -> _Joined:
        file = files.numbers[_shifted(old.chunks.file, new.chunk_file, files.old)]
        order = np.lexsort((_joined(old.chunks.start, new.chunk_start), file))
        return cls.of(len(old.chunks.ids), len(file), order[file[order] >= 0])

    @classmethod
    def definitions(cls, old: Snapshot, new: _Columns, chunks: _Joined) -> _Joined:
        chunk = chunks.numbers[_shifted(old.definitions.chunk, new.definition_chunk, chunks.old)]
        order = np.argsort(chunk, kind="stable")
        return cls.of(len(old.definitions.names), len(chunk), order[chunk[order] >= 0])

    def postings(self, old: Postings, new: PostingsBuilder) -> Postings:
        kept = old.renumbered(self.numbers[: self.old], len(self.order))
        added = new.build(len(self.numbers) - self.old)
        return kept.merged(added.renumbered(self.numbers[self.old :], len(self.order)))


def empty_snapshot(dimensions: int) -> Snapshot:
    """A snapshot of nothing."""
    none = np.empty(0, dtype=np.int32)
    ids = np.empty(0, dtype=np.int64)
    postings = Postings(documents=0, starts=np.zeros(1, dtype=np.int64), docs=none, counts=np.empty(0, dtype=np.uint16))
    return Snapshot(
        files=FileTable(ids=ids, paths=(), languages=()),
        chunks=ChunkTable(ids=ids, file=none, start=none, end=none),
        definitions=DefinitionTable(names=(), chunk=none, is_type=np.empty(0, dtype=bool), lines=none),
        vocabulary=Vocabulary(),
        terms=postings,
        definition_terms=postings,
        topic_terms=postings,
        folder_terms=postings,
        vectors=np.empty((0, dimensions), dtype=np.float16),
        rank=np.empty(0, dtype=np.float32),
        known_traits={},
    )


def _name_parts(name: str) -> set[str]:
    """The stemmed parts of a name without the name as a whole, which would count everything twice."""
    tokens = set(identifier_tokens(name))
    return (tokens - {name.lower().strip("_$")}) or tokens


def _joined(old: NDArray[Scalar], new: array[int]) -> NDArray[Scalar]:
    added = np.frombuffer(new, dtype=np.dtype(new.typecode)) if new else old[:0]
    return np.concatenate((old, added.astype(old.dtype)))


def _shifted(old: Ints, new: array[int], by: int) -> Ints:
    """Join two columns of places where the new ones point into rows that stand behind `by` old ones."""
    joined = _joined(old, new).astype(np.int32)
    joined[len(old) :] += by
    return joined
