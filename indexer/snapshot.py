"""The arrays that a search runs on: one generation's files, chunks, definitions, postings and vectors, by ordinal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.lexical import LexicalIndex
from indexer.paths import PathTraits, traits
from indexer.postings import Postings, Vocabulary, summed

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTable:
    """Files sorted by path; `ids` are the catalog's, `languages` are names."""

    ids: NDArray[np.int64]
    paths: tuple[str, ...]
    languages: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkTable:
    """Chunks sorted by file and first line: catalog ids, file ordinals, and 1-based inclusive lines."""

    ids: NDArray[np.int64]
    file: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionTable:
    """Definitions by the chunk they begin in: folded names, chunk ordinals, and what ranking asks of them."""

    names: tuple[str, ...]
    chunk: Ints
    is_type: NDArray[np.bool_]
    lines: Ints


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One generation in memory. Nothing in it changes; a refresh makes another one.

    Documents of `terms` are chunks, of `definition_terms` definitions, of `topic_terms` and `folder_terms` files;
    all number their terms by `vocabulary`. Shapes: vectors float16 [chunks, dimensions], rank float32 [chunks].
    """

    files: FileTable
    chunks: ChunkTable
    definitions: DefinitionTable
    vocabulary: Vocabulary
    terms: Postings
    definition_terms: Postings
    topic_terms: Postings
    folder_terms: Postings
    vectors: NDArray[np.float16]
    rank: Floats
    known_traits: Mapping[str, PathTraits]  # of the files that the generation before had

    def warm(self) -> None:
        """Work out what the first search would have to, so that nobody waits for it."""
        for name in _DERIVED:
            getattr(self, name)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the chunks."""
        return LexicalIndex(self.vocabulary, self.terms)

    @cached_property
    def matrix(self) -> Floats:
        """The vectors in single precision, which is what numpy multiplies fast; half is kept on disk."""
        return self.vectors.astype(np.float32)

    @cached_property
    def file_sizes(self) -> NDArray[np.int64]:
        """Tokens of each file, as BM25 counts them."""
        return summed(self.chunks.file, self.lexical.doc_len, len(self.files.paths)).astype(np.int64)

    @cached_property
    def definition_weights(self) -> NDArray[np.float64]:
        """The summed weight of each definition's name, never zero."""
        return _positive(self.definition_terms.weight_sums(self.lexical.term_weights))

    @cached_property
    def topic_weights(self) -> NDArray[np.float64]:
        """The summed weight of each file's topic, never zero."""
        return _positive(self.topic_terms.weight_sums(self.lexical.term_weights))

    @cached_property
    def traits(self) -> tuple[PathTraits, ...]:
        """What each file's path tells."""
        return tuple(self.known_traits.get(path) or traits(path) for path in self.files.paths)

    @cached_property
    def flags(self) -> dict[str, NDArray[np.bool_]]:
        """The traits as one array a kind: test, example, secondary, doc, config."""
        flags = {
            "test": [each.is_test for each in self.traits],
            "example": [each.is_example for each in self.traits],
            "secondary": [each.is_secondary for each in self.traits],
            "doc": [each.source_type == "doc" for each in self.traits],
            "config": [each.source_type == "config" for each in self.traits],
        }
        return {name: np.array(values, dtype=bool) for name, values in flags.items()}

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Definition ordinals by folded name."""
        table: dict[str, list[int]] = {}
        for ordinal, name in enumerate(self.definitions.names):
            table.setdefault(name, []).append(ordinal)
        return table

    @cached_property
    def chunk_ordinals(self) -> dict[int, int]:
        """Chunk ordinals by catalog id."""
        return {int(chunk): ordinal for ordinal, chunk in enumerate(self.chunks.ids)}

    def save(self, folder: Path) -> None:
        """Write everything into a folder that does not exist yet."""
        folder.mkdir(parents=True)
        for name, array in self._arrays().items():
            np.save(folder / f"{name}.npy", array)
        texts = {
            "paths": self.files.paths,
            "languages": self.files.languages,
            "names": self.definitions.names,
            "terms": self.vocabulary.terms(),
        }
        (folder / "texts.json").write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "file_ids": self.files.ids,
            "vectors": self.vectors,
            "rank": self.rank,
        }
        for prefix, table in (("chunk", self.chunks), ("definition", self.definitions)):
            arrays |= {f"{prefix}_{name}": array for name, array in _array_fields(table)}
        for prefix in _POSTINGS:
            arrays |= {f"{prefix}_{name}": array for name, array in _array_fields(getattr(self, prefix))}
        return arrays

    @classmethod
    def load(cls, folder: Path) -> Snapshot:
        """Read a saved snapshot; OSError, ValueError or KeyError where it is damaged."""
        texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
        read = _Reader(folder)
        files = FileTable(ids=read("file_ids"), paths=tuple(texts["paths"]), languages=tuple(texts["languages"]))
        chunks = ChunkTable(
            ids=read("chunk_ids"), file=read("chunk_file"), start=read("chunk_start"), end=read("chunk_end")
        )
        definitions = DefinitionTable(
            names=tuple(texts["names"]),
            chunk=read("definition_chunk"),
            is_type=read("definition_is_type"),
            lines=read("definition_lines"),
        )
        documents = (len(chunks.ids), len(definitions.names), len(files.paths), len(files.paths))
        return cls(
            files=files,
            chunks=chunks,
            definitions=definitions,
            vocabulary=Vocabulary(texts["terms"]),
            **{name: read.postings(name, count) for name, count in zip(_POSTINGS, documents, strict=True)},
            vectors=read("vectors"),
            rank=read("rank"),
            known_traits={},
        )


_DERIVED = tuple(name for name, part in vars(Snapshot).items() if isinstance(part, cached_property))
_POSTINGS = ("terms", "definition_terms", "topic_terms", "folder_terms")


@dataclass(frozen=True, slots=True)
class _Reader:
    folder: Path
    suffix: str = field(default=".npy")

    def __call__(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = np.load(self.folder / f"{name}{self.suffix}", allow_pickle=False)
        return array

    def postings(self, prefix: str, documents: int) -> Postings:
        parts = {name: self(f"{prefix}_{name}") for name in ("starts", "docs", "counts")}
        return Postings(documents=documents, **parts)


def _array_fields(table: object) -> list[tuple[str, NDArray[Any]]]:
    pairs = [(part.name, getattr(table, part.name)) for part in fields(table)]  # type: ignore[arg-type]
    return [(name, value) for name, value in pairs if isinstance(value, np.ndarray)]


def _positive(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(sums > 0, sums, 1.0)
