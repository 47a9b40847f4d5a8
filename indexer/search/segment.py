"""The files added by one refresh, with all ranking data: immutable."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from indexer.checksums import append_checksum, open_checked
from indexer.search.columns import ChunkTable, DefinitionTable, FileTable, Tables, make_string_column
from indexer.search.postings import Postings, TermLists

Floats = NDArray[np.float32]
Part = TypeVar("Part")

POSTINGS = ("terms", "definition_terms", "topic_terms", "folder_terms")


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Rows of files, chunks and definitions, in the order of arrival.

    `terms` indexes chunks, `definition_terms` definitions, `topic_terms` and `folder_terms` files. `new_terms` and
    `new_names` are the words numbered since the previous segment, so that all segments of a snapshot together have its
    vocabularies. `terms_by_chunk` is the inverse of `terms`. Shapes: vectors float32 [chunks, dimensions], with values
    that half precision can hold, which is how they are stored.
    """

    tables: Tables
    new_terms: tuple[str, ...]
    new_names: tuple[str, ...]
    terms: Postings
    terms_by_chunk: TermLists
    definition_terms: Postings
    topic_terms: Postings
    folder_terms: Postings
    vectors: Floats
    name: str = field(default_factory=lambda: uuid4().hex)

    @property
    def size(self) -> int:
        """The number of chunks."""
        return len(self.tables.chunks.ids)

    @property
    def is_needed(self) -> bool:
        """Whether it contains anything."""
        return bool(len(self.tables.files.ids) or self.new_terms or self.new_names)

    def replace_tables(self, *, tables: Tables) -> Segment:
        """Return a segment with other tables."""
        return replace(self, tables=tables, name=uuid4().hex)

    @property
    def file(self) -> str:
        """The name of its file."""
        return _make_file_name(self.name)

    def save(self, folder: Path) -> None:
        """Write everything into one file of a folder."""
        texts = {
            "paths": self.tables.files.paths.tolist(),
            "languages": self.tables.files.languages.tolist(),
            "terms": self.new_terms,
            "names": self.new_names,
        }
        with (folder / self.file).open("wb") as file:
            np.save(file, np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8))
            for part in (self.tables.files, self.tables.chunks, self.tables.definitions, self.terms_by_chunk):
                _write_part(file, part)
            for name in POSTINGS:
                _write_part(file, getattr(self, name))
            np.save(file, self.vectors.astype(np.float16))
        append_checksum(folder / self.file)

    @classmethod
    def load(cls, folder: Path, name: str) -> Segment:
        """Load a segment; OSError, ValueError, KeyError, TypeError or EOFError if its file is damaged."""
        with open_checked(folder / _make_file_name(name)) as file:
            texts: dict[str, list[str]] = json.loads(_read_array(file).tobytes())
            columns = {"paths": make_string_column(texts["paths"]), "languages": make_string_column(texts["languages"])}
            files = _read_part(file, FileTable, **columns)
            tables = Tables(
                files=files, chunks=_read_part(file, ChunkTable), definitions=_read_part(file, DefinitionTable)
            )
            by_chunk = _read_part(file, TermLists)
            documents = (len(tables.chunks.ids), len(tables.definitions.names), len(files.ids), len(files.ids))
            postings = [_read_part(file, Postings, documents=count) for count in documents]
            return cls(
                tables=tables,
                new_terms=tuple(texts["terms"]),
                new_names=tuple(texts["names"]),
                terms_by_chunk=by_chunk,
                **dict(zip(POSTINGS, postings, strict=True)),
                vectors=_read_array(file).astype(np.float32),
                name=name,
            )


def _make_file_name(name: str) -> str:
    if not name.isalnum():  # it may come from a folder that somebody restored, and must not lead out of that
        raise ValueError(name)
    return f"{name}.npy"


def _write_part(file: BinaryIO, part: object) -> None:
    """Write the arrays of a part consecutively; texts are stored separately."""
    for column in fields(part):  # type: ignore[arg-type]
        value = getattr(part, column.name)
        if isinstance(value, np.ndarray) and value.dtype != object:
            np.save(file, value)


def _read_part(file: BinaryIO, kind: type[Part], **known: Any) -> Part:
    """Read a part, except known arrays."""
    values = {column.name: _read_array(file) for column in fields(kind) if column.name not in known}  # type: ignore[arg-type]
    return kind(**values, **known)


def _read_array(file: BinaryIO) -> NDArray[Any]:
    array: NDArray[Any] = np.load(file, allow_pickle=False)
    return array
