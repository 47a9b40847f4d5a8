"""Sparse term counts, stored by term: its documents, with counts."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count as count_up
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.search.columns import Rows, compute_offsets, compute_starts, expand_spans, invert_rows
from indexer.text.tokens import Bag

_MAX_COUNTED = np.iinfo(np.uint16).max
_BLOCK = 1 << 20  # entries that are converted at a time, so that memory does not hold all of them twice


@dataclass(frozen=True, kw_only=True, slots=True)
class Postings:
    """Counts of terms in documents, by term: the t-th of `terms` owns `docs[starts[t]:starts[t + 1]]`.

    Shapes: terms int32 [terms], rising, those of any document; starts int64 [terms + 1]; docs int32
    [entries]; counts uint16 [entries] (larger counts are capped).
    """

    documents: int
    terms: NDArray[np.int32]
    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def of(cls, documents: int, terms: NDArray[Any], docs: NDArray[Any], counts: NDArray[Any]) -> Postings:
        """Sort entries of a term, a document and a count; those of document -1 are dropped."""
        known, sizes = np.unique(terms[docs >= 0], return_counts=True)
        starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
        made = cls(
            documents=documents,
            terms=known.astype(np.int32, copy=False),
            starts=starts,
            docs=np.empty(starts[-1], dtype=np.int32),
            counts=np.empty(starts[-1], dtype=np.uint16),
        )
        following = starts[:-1].copy()
        for start in range(0, len(terms), _BLOCK):
            span = slice(start, start + _BLOCK)
            order = np.argsort(terms[span], kind="stable")
            order = order[docs[span][order] >= 0] + start
            firsts = np.flatnonzero(np.diff(terms[order], prepend=-1))
            lengths = np.diff(firsts, append=len(order))
            rows = np.searchsorted(known, terms[order[firsts]])
            places = expand_spans(following[rows], lengths)
            made.docs[places] = docs[order]
            made.counts[places] = np.minimum(counts[order], _MAX_COUNTED)
            following[rows] += lengths
        return made

    def find_documents(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return the documents with a term, and its counts."""
        place = int(np.searchsorted(self.terms, np.int32(term)))  # of another type, all terms would be converted
        if place == len(self.terms) or self.terms[place] != term:
            return self.docs[:0], self.counts[:0]
        span = slice(int(self.starts[place]), int(self.starts[place + 1]))
        return self.docs[span], self.counts[span]

    def term_of_entries(self) -> NDArray[np.int32]:
        """Return the term of each entry."""
        return np.repeat(self.terms, np.diff(self.starts))

    def lengths(self) -> NDArray[np.int64]:
        """The sum of counts of each document."""
        return sum_by_key(self.docs, self.counts, self.documents).astype(np.int64)

    def weight_sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the weights of each document's terms, repeats not counted."""
        return sum_by_key(self.docs, np.repeat(weights[self.terms], np.diff(self.starts)), self.documents)


def merge_postings(parts: Sequence[Postings], documents: Rows) -> Postings:
    """Return the postings of some documents, in the order given, numbered from the first part's first one."""
    numbers = invert_rows(documents, sum(part.documents for part in parts))
    shifts = compute_offsets([part.documents for part in parts])
    docs = np.concatenate([numbers[part.docs + shift] for part, shift in zip(parts, shifts, strict=True)])
    terms = np.concatenate([part.term_of_entries() for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    return Postings.of(len(documents), terms, docs, counts)


class PostingsStack:
    """The postings of several segments as one: documents are numbered from one to the next.

    `live` are the documents that still count, in the order of the result.
    """

    def __init__(self, parts: Sequence[Postings], live: Rows) -> None:
        self._parts = tuple(zip(parts, compute_offsets([part.documents for part in parts]), strict=True))
        self.documents = sum(part.documents for part in parts)
        self.live = live

    def find_documents(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return the documents with a term, dead ones included, and its counts."""
        found: list[tuple[NDArray[np.int32], NDArray[np.uint16]]] = []
        for part, offset in self._parts:
            docs, counts = part.find_documents(term)
            if len(docs):
                found.append((docs + offset if offset else docs, counts))
        if len(found) == 1:
            return found[0]
        all_docs, all_counts = zip(*found, strict=True) if found else ((_NO_DOCUMENTS,), (_NO_COUNTS,))
        return np.concatenate(all_docs), np.concatenate(all_counts)

    def weight_sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the weights of each live document's terms, repeats not counted."""
        sums: NDArray[np.float64] = np.concatenate([part.weight_sums(weights) for part, _ in self._parts])[self.live]
        return sums


_NO_DOCUMENTS = np.empty(0, dtype=np.int32)
_NO_COUNTS = np.empty(0, dtype=np.uint16)


@dataclass(frozen=True, kw_only=True, slots=True)
class TermLists:
    """The distinct terms of each document: document d owns `terms[starts[d]:starts[d + 1]]`."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int32]

    @classmethod
    def of_counts(cls, terms: NDArray[Any], counts: NDArray[Any]) -> TermLists:
        """Split the terms of all documents into lists of given lengths."""
        starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
        return cls(starts=starts, terms=terms.astype(np.int32, copy=False))

    def of(self, documents: Rows) -> NDArray[np.int32]:
        """Return the terms of some documents, one after the other."""
        return self.terms[expand_spans(self.starts[documents], np.diff(self.starts)[documents])]


def select_term_lists(parts: Sequence[TermLists], documents: Rows) -> TermLists:
    """Return the lists of some documents, in the order given, numbered from the first part's first one."""
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    terms = np.concatenate([part.terms for part in parts])
    return TermLists.of_counts(
        terms[expand_spans(compute_starts(counts)[documents], counts[documents])], counts[documents]
    )


class PostingsBuilder:
    """Collects documents as bags of tokens; numbers new terms in the given vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._terms = array("i")
        self._counts = array("i")
        self._sizes = array("i")

    @property
    def entries(self) -> int:
        """The number of entries added."""
        return len(self._terms)

    def add(self, tokens: Iterable[str] | Bag) -> None:
        """Add the tokens of the next document, counted or not."""
        bag = Counter(tokens)
        self._terms.extend(self._vocabulary.add(bag))
        self._counts.extend(bag.values())
        self._sizes.append(len(bag))

    def build(self) -> Postings:
        """The postings of everything added."""
        docs = np.repeat(np.arange(len(self._sizes), dtype=np.int32), _make_int_array(self._sizes))
        return Postings.of(len(self._sizes), _make_int_array(self._terms), docs, _make_int_array(self._counts))

    def build_term_lists(self) -> TermLists:
        """The terms of everything added, by document."""
        return TermLists.of_counts(_make_int_array(self._terms), _make_int_array(self._sizes))


def _make_int_array(values: array[int]) -> NDArray[Any]:
    return np.frombuffer(values, dtype=np.dtype(values.typecode)) if values else np.empty(0, dtype=np.int32)


def sum_by_key(keys: NDArray[Any], values: NDArray[Any] | None, size: int) -> NDArray[np.float64]:
    """Add up `values` by key, or count the keys if there are none; keys run from 0 to `size` - 1."""
    sums: NDArray[np.float64] = np.zeros(size)
    for start in range(0, len(keys), _BLOCK):  # numpy converts what it counts
        block = slice(start, start + _BLOCK)
        sums += np.bincount(keys[block], weights=None if values is None else values[block], minlength=size)
    return sums


class Vocabulary:
    """Words and their numbers. It only grows, and a word keeps its number, so that generations can share one.

    A generation may meet later words, with numbers beyond its own.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._numbers = _Numbers(zip(words, count_up(), strict=False))

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, word: str) -> int | None:
        """The number of a word, None if it has none."""
        return self._numbers.get(word)

    def add(self, words: Iterable[str]) -> Iterable[int]:
        """Return the numbers of words, numbering new ones."""
        return map(self._numbers.__getitem__, words)

    def words(self) -> Sequence[str]:
        """All words, by number."""
        return list(self._numbers)  # a dictionary keeps the order in which numbers were given

    def since(self, number: int) -> tuple[str, ...]:
        """Return the words from a number on, without reading earlier ones."""
        return tuple(islice(reversed(self._numbers), len(self) - number))[::-1]


class _Numbers(dict[str, int]):
    """Numbers by word that assigns the next number to an unknown word; it must be fast, for millions of lookups."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
