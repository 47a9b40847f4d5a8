"""Pairs as bags of words: arrays over one vocabulary, which are small enough to keep millions of words in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from indexer.text.tokens import IDENTIFIER, split_identifier
from scripts.static_training.pairs import Pair

KINDS = ("doc", "long", "docs", "name", "file", "test")
MIN_WORDS = 8  # a body of fewer says nothing
LONGEST_HEADER = 60  # words

Ints = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bags:
    """Pairs, one row each: counts of words in three matrices, and numbers that say what stands together.

    Pairs with one `group` have views of one chunk; neighbours in a `folder` are alike; a `source` is a package.
    """

    words: list[str]
    headers: csr_array
    bodies: csr_array
    questions: csr_array
    kinds: Ints
    groups: Ints
    folders: Ints
    sources: Ints

    def __len__(self) -> int:
        return len(self.kinds)


class _Numbers(defaultdict[str, int]):
    """Gives the next number to whatever was not seen before."""

    def __init__(self) -> None:
        super().__init__(count().__next__)


def split_words(text: str) -> list[str]:
    """Return the words of a text as the embedder reads a chunk."""
    return [part for identifier in IDENTIFIER.findall(text) for part in split_identifier(identifier)]


def pack_pairs(pairs: Iterable[Pair], path: Path) -> Counter[str]:
    """Write the pairs of one source as arrays, without those that have next to no body; returns how many of a kind."""
    words, groups, folders = _Numbers(), _Numbers(), _Numbers()
    columns: defaultdict[str, list[list[int]]] = defaultdict(list)
    rows: list[tuple[int, int, int]] = []
    for pair in pairs:
        body = split_words(pair.body)
        if len(body) < MIN_WORDS:
            continue
        columns["headers"].append([words[word] for word in split_words(pair.header)[:LONGEST_HEADER]])
        columns["bodies"].append([words[word] for word in body])
        columns["questions"].append([words[word] for word in pair.question])
        rows.append((KINDS.index(pair.kind), groups[pair.group], folders[pair.folder]))
    arrays = {"words": np.array(list(words), dtype=np.str_), "rows": np.array(rows, np.int32).reshape(-1, 3)}
    for name, lists in columns.items():
        arrays[name] = np.fromiter(chain.from_iterable(lists), np.int32)
        arrays[f"{name}_lengths"] = np.fromiter(map(len, lists), np.int32, len(lists))
    np.savez_compressed(path, allow_pickle=False, **arrays)
    return Counter(KINDS[kind] for kind, _, _ in rows)


def load_bags(paths: Sequence[Path]) -> Bags:
    """Put the pairs of all sources together over one vocabulary."""
    words = _Numbers()
    parts: defaultdict[str, list[NDArray[np.int32]]] = defaultdict(list)
    shifts = np.zeros(3, np.int32)
    for source, path in enumerate(paths):
        with np.load(path) as arrays:
            rows = arrays["rows"]
            if not len(rows):
                continue
            numbers = np.array([words[word] for word in arrays["words"].tolist()], np.int32)
            for name in ("headers", "bodies", "questions"):
                parts[name].append(numbers[arrays[name]])
                parts[f"{name}_lengths"].append(arrays[f"{name}_lengths"])
            parts["rows"].append(rows + shifts)
            parts["sources"].append(np.full(len(rows), source, np.int32))
            shifts[1:] += rows[:, 1:].max(axis=0) + 1
    if not parts:
        message = "No pairs were found in any source."
        raise SystemExit(message)
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    matrices = {
        name: _count_words(joined[name], joined[f"{name}_lengths"], len(words))
        for name in ("headers", "bodies", "questions")
    }
    kinds, groups, folders = np.ascontiguousarray(joined["rows"].T)
    return Bags(words=list(words), **matrices, kinds=kinds, groups=groups, folders=folders, sources=joined["sources"])


def _count_words(words: Ints, lengths: Ints, width: int) -> csr_array:
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    matrix = csr_array((np.ones(len(words), np.float32), words, starts), shape=(len(lengths), width))
    matrix.sum_duplicates()
    return matrix
