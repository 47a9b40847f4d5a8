"""Sparse term counts, stored by term: which documents a term is in, and how often."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bag = Mapping[str, int]  # tokens with their counts

_MOST_COUNTED = np.iinfo(np.uint16).max


class Vocabulary:
    """Terms and their numbers; a term once known keeps its number."""

    def __init__(self, terms: Iterable[str] = ()) -> None:
        self._terms = list(terms)
        self._numbers = _Numbers(zip(self._terms, range(len(self._terms)), strict=True))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> str:
        return self.terms()[number]

    def number(self, term: str) -> int | None:
        """The number of a term, None if it has never been seen."""
        return self._numbers.get(term)

    def add(self, terms: Iterable[str]) -> Iterable[int]:
        """The numbers of terms, given now to those that had none."""
        return map(self._numbers.__getitem__, terms)

    def copy(self) -> Vocabulary:
        """A vocabulary of its own with the same numbers."""
        twin = Vocabulary()
        twin._terms, twin._numbers = list(self.terms()), _Numbers(self._numbers)  # copied whole, not term by term
        return twin

    def terms(self) -> Sequence[str]:
        """All terms, by number."""
        if len(self._terms) != len(self._numbers):
            self._terms = list(self._numbers)  # a dictionary keeps the order in which numbers were given
        return self._terms


class _Numbers(dict[str, int]):
    """Numbers by term that counts on for a term it does not know; millions are looked up, so it must not call back."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class Postings:
    """Counts of terms in documents in compressed columns: term t owns `docs[starts[t]:starts[t + 1]]`.

    Shapes: starts int64 [terms + 1], docs int32 [entries], counts uint16 [entries] (larger counts are capped).
    """

    documents: int
    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @property
    def terms(self) -> int:
        """How many terms there are, those without a document included."""
        return len(self.starts) - 1

    def documents_of(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """The documents that a term is in, and its counts there."""
        if term >= self.terms:
            return self.docs[:0], self.counts[:0]
        span = slice(int(self.starts[term]), int(self.starts[term + 1]))
        return self.docs[span], self.counts[span]

    def frequencies(self, terms: int | None = None) -> NDArray[np.int64]:
        """In how many documents each term is; padded with zeros up to `terms`."""
        frequencies = np.diff(self.starts)
        return frequencies if terms is None else np.pad(frequencies, (0, terms - len(frequencies)))

    def term_of_entries(self) -> NDArray[np.int32]:
        """The term of each entry."""
        return np.repeat(np.arange(self.terms, dtype=np.int32), np.diff(self.starts))

    def lengths(self) -> NDArray[np.int64]:
        """The sum of counts of each document."""
        return summed(self.docs, self.counts, self.documents).astype(np.int64)

    def weight_sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the weights of each document's terms, repeats not counted."""
        return summed(self.docs, weights[self.term_of_entries()], self.documents)

    def renumbered(self, numbers: NDArray[np.int32], documents: int) -> Postings:
        """The same counts with documents renumbered; a document whose new number is -1 is left out."""
        docs = numbers[self.docs]
        kept = docs >= 0
        before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
        return Postings(
            documents=documents, starts=before[self.starts], docs=docs[kept], counts=np.asarray(self.counts)[kept]
        )

    def merged(self, other: Postings) -> Postings:
        """Both together; they count disjoint sets of the same documents, `other` over at least as many terms."""
        mine = np.concatenate((self.starts, np.full(other.terms - self.terms, self.starts[-1], dtype=np.int64)))
        places = mine[1:][other.term_of_entries()]
        return Postings(
            documents=self.documents,
            starts=mine + other.starts,
            docs=np.insert(self.docs, places, other.docs),
            counts=np.insert(self.counts, places, other.counts),
        )


class PostingsBuilder:
    """Collects documents as bags of tokens; numbers new terms in the given vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._terms = array("i")
        self._docs = array("i")
        self._counts = array("i")

    def add(self, document: int, tokens: Iterable[str] | Bag) -> None:
        """Add the tokens of one document, counted or not; each document is added once."""
        bag = Counter(tokens)
        self._terms.extend(self._vocabulary.add(bag))
        self._counts.extend(bag.values())
        self._docs.extend([document] * len(bag))

    def build(self, documents: int) -> Postings:
        """The postings of everything added, for `documents` documents."""
        terms, docs, counts = (_ints(part) for part in (self._terms, self._docs, self._counts))
        order = np.argsort(terms, kind="stable")
        frequencies = np.bincount(terms, minlength=len(self._vocabulary))
        starts = np.concatenate(([0], np.cumsum(frequencies))).astype(np.int64)
        return Postings(
            documents=documents,
            starts=starts,
            docs=docs[order].astype(np.int32),
            counts=np.minimum(counts[order], _MOST_COUNTED).astype(np.uint16),
        )


def _ints(values: array[int]) -> NDArray[Any]:
    return np.frombuffer(values, dtype=np.dtype(values.typecode)) if values else np.empty(0, dtype=np.int32)


def summed(keys: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[np.float64]:
    """Add up `values` by key; keys run from 0 to `size` - 1."""
    sums: NDArray[Any] = np.bincount(keys, weights=values, minlength=size)
    return sums.astype(np.float64)
