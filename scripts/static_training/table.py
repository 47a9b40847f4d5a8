"""Tables of word vectors: the one that a training starts from, the one it ends with, and the files of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from indexer.embedding.static_embedder import WordPieceTokenizer

STATIC_MODEL = Path(__file__).resolve().parents[2] / "indexer" / "embedding" / "static_model"
MAX_ADDED = 13_000  # words; with the pieces of the base, 256 dimensions then take 11 MB
LONGEST_ADDED = 25  # letters
# The training learns less; but questions name a chunk's path and names more often than comments do.
HEADER_WEIGHT = 1.3
FILES = ("vectors.npy", "scales.npy", "query_weights.npy", "vocabulary.txt")

Floats = NDArray[np.floating]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A vector and a weight in questions for each token, and how much a header counts beside a body."""

    name: str
    tokens: list[str]
    vectors: Floats
    query_weights: Floats
    header_weight: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StartingTable:
    """The vectors of word pieces, and after them of added words, each the sum of its pieces."""

    name: str
    tokens: list[str]
    vectors: Floats

    @classmethod
    def read(cls, folder: Path) -> StartingTable:
        """Read a table that `write_table` wrote."""
        return cls(
            name=json.loads((folder / "model.json").read_text(encoding="utf-8"))["name"].rpartition("-")[0],
            tokens=(folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n"),
            vectors=np.load(folder / "vectors.npy") * np.load(folder / "scales.npy")[:, None],
        )

    def extend(self, words: Sequence[str], counts: NDArray[np.float64], *, fewest: float) -> StartingTable:
        """Add the commonest of the words that are cut into pieces; `counts` says how common each is."""
        pieces = WordPieceTokenizer(self.tokens)
        cut = [
            number
            for number in np.argsort(-counts, kind="stable").tolist()
            if counts[number] >= fewest
            and len(words[number]) < LONGEST_ADDED
            and words[number].isascii()
            and not words[number].isdigit()
            and len(pieces.of_word(words[number])) > 1
        ][:MAX_ADDED]
        sums = [self.vectors[list(pieces.of_word(words[number]))].sum(axis=0) for number in cut]
        return StartingTable(
            name=self.name,
            tokens=self.tokens + [words[number] for number in cut],
            vectors=np.vstack([self.vectors, *sums]).astype(np.float32),
        )

    def spell_words(self, words: Sequence[str]) -> csr_array:
        """Return the matrix of words by rows of the table, which says what each word is the sum of."""
        pieces = WordPieceTokenizer(self.tokens)
        spelled = [pieces.of_word(word) for word in words]
        columns = np.concatenate([np.asarray(rows, np.int32) for rows in spelled])
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows in spelled])])
        shape = (len(words), len(self.tokens))
        matrix = csr_array((np.ones(len(columns), np.float32), columns, starts), shape=shape)
        matrix.sum_duplicates()
        return matrix


def average_tables(tables: Sequence[Table]) -> Table:
    """Average runs that started from the same table; what one run learned by chance weighs less."""
    return Table(
        name=tables[0].name,
        tokens=tables[0].tokens,
        vectors=np.mean([table.vectors for table in tables], axis=0),
        query_weights=np.exp(np.mean([np.log(table.query_weights) for table in tables], axis=0)),
        header_weight=tables[0].header_weight,
    )


def write_table(table: Table, target: Path) -> str:
    """Write vectors as int8 with a scale a row, the weights, and the tokens, one a line; returns the model's name."""
    target.mkdir(parents=True, exist_ok=True)
    rows, scales = quantise(table.vectors)
    np.save(target / "vectors.npy", rows)
    np.save(target / "scales.npy", scales)
    np.save(target / "query_weights.npy", table.query_weights.astype(np.float16))
    (target / "vocabulary.txt").write_text("\n".join(table.tokens), encoding="utf-8", newline="\n")
    name = f"{table.name}-{fingerprint(target)}"
    description = {"name": name, "header_weight": table.header_weight}
    (target / "model.json").write_text(json.dumps(description) + "\n", encoding="utf-8", newline="\n")
    return name


def quantise(vectors: NDArray[np.floating]) -> tuple[NDArray[np.int8], Floats]:
    """Round each row to 127 steps of its largest component; `rows * scales[:, None]` gives the vectors back."""
    scales = np.abs(vectors).max(axis=1) / 127
    safe = np.where(scales > 0, scales, 1)
    return np.rint(vectors / safe[:, None]).astype(np.int8), scales.astype(np.float32)


def fingerprint(folder: Path) -> str:
    """Return eight hex digits that change with any of the files."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:8]
