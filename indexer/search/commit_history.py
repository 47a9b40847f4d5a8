"""Scores files by the messages of commits that touched them, whose words the files may lack."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.checksums import append_checksum, open_checked
from indexer.search.bm25 import Bm25Index
from indexer.search.columns import Longs, expand_spans
from indexer.search.postings import (
    Postings,
    PostingsBuilder,
    PostingsStack,
    TermLists,
    Vocabulary,
    merge_postings,
    select_term_lists,
    sum_by_key,
)
from indexer.text.tokens import tokenize
from indexer.types import CommitMessage

Scores = NDArray[np.float64]

_FILE = "history.npy"
_MAX_COMMITS = 6_000
_SUBJECT, _BODY = 10, 3  # how often a word of each counts, in tenths
_K1 = 1.5 * _SUBJECT
_BEST_COMMITS = 40
_MIN_COMMITS = 300  # commits, which say too little of the files; twice as many say enough


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitHistory:
    """The words of the newest commits, newest first, and the paths that each touched.

    Documents of `terms` are commits; `touched` has the numbers of `paths` by commit.
    """

    words: Vocabulary
    terms: Postings
    paths: Vocabulary
    touched: TermLists

    @property
    def is_rich(self) -> bool:
        """Whether there are enough commits to be useful."""
        return self.terms.documents >= 2 * _MIN_COMMITS

    def prepend(self, messages: Sequence[CommitMessage]) -> CommitHistory:
        """Return the history with newer commits, newest first, without the oldest beyond a limit."""
        if not messages:
            return self
        added, paths = PostingsBuilder(self.words), Vocabulary(self.paths.words())
        for message in messages:
            bag = Counter(dict.fromkeys(tokenize(message.body), _BODY))
            bag.update(dict.fromkeys(tokenize(message.subject), _SUBJECT))
            added.add(bag)
        numbers = [number for message in messages for number in paths.add(message.paths)]
        touched = TermLists.of_counts(np.array(numbers), np.array([len(message.paths) for message in messages]))
        kept = np.arange(min(len(messages) + self.terms.documents, _MAX_COMMITS))
        return _drop_unused_words(
            self.words.words(),
            merge_postings([added.build(), self.terms], kept),
            paths.words(),
            select_term_lists([touched, self.touched], kept),
        )

    def save(self, folder: Path) -> None:
        """Write everything into a folder."""
        texts = json.dumps([list(self.words.words()), list(self.paths.words())]).encode()
        terms, touched = self.terms, self.touched
        arrays = (terms.terms, terms.starts, terms.docs, terms.counts, touched.starts, touched.terms)
        with (folder / _FILE).open("wb") as file:
            for array in (np.frombuffer(texts, dtype=np.uint8), *arrays):
                np.save(file, array)
        append_checksum(folder / _FILE)

    @classmethod
    def load(cls, folder: Path) -> CommitHistory:
        """Load a saved history; OSError, ValueError, TypeError or EOFError if it is damaged."""
        with open_checked(folder / _FILE) as file:
            texts, terms, starts, docs, counts, *touched = (np.load(file, allow_pickle=False) for _ in range(7))
        words, paths = json.loads(texts.tobytes())
        return cls(
            words=Vocabulary(words),
            terms=Postings(documents=len(touched[0]) - 1, terms=terms, starts=starts, docs=docs, counts=counts),
            paths=Vocabulary(paths),
            touched=TermLists(starts=touched[0], terms=touched[1]),
        )


def make_empty_history() -> CommitHistory:
    """Make the history of a repository without commits."""
    nothing = PostingsBuilder(Vocabulary())
    return CommitHistory(
        words=Vocabulary(), terms=nothing.build(), paths=Vocabulary(), touched=nothing.build_term_lists()
    )


def _drop_unused_words(
    words: Sequence[str], terms: Postings, paths: Sequence[str], touched: TermLists
) -> CommitHistory:
    """Renumber words and paths, so that neither grow forever."""
    used, numbers = np.unique(touched.terms, return_inverse=True)
    return CommitHistory(
        words=Vocabulary(words[term] for term in terms.terms.tolist()),
        terms=Postings(
            documents=terms.documents,
            terms=np.arange(len(terms.terms), dtype=np.int32),
            starts=terms.starts,
            docs=terms.docs,
            counts=terms.counts,
        ),
        paths=Vocabulary(paths[number] for number in used.tolist()),
        touched=TermLists(starts=touched.starts, terms=numbers.astype(np.int32)),
    )


class HistoryIndex:
    """Scores the files of a generation by their commits."""

    def __init__(self, history: CommitHistory, paths: Sequence[str]) -> None:
        self._files = len(paths)
        ordinals = {path: ordinal for ordinal, path in enumerate(paths)}
        file_of_path = np.array([ordinals.get(path, -1) for path in history.paths.words()], dtype=np.int64)
        commits = np.repeat(np.arange(history.terms.documents), np.diff(history.touched.starts))
        files = file_of_path[history.touched.terms]
        self._commit_of_pairs, self._file_of_pairs = commits[files >= 0], files[files >= 0]
        counts = np.bincount(self._commit_of_pairs, minlength=history.terms.documents)
        starts = np.cumsum(counts) - counts
        rows = expand_spans(starts[history.terms.docs], counts[history.terms.docs])
        keys = (
            np.repeat(history.terms.term_of_entries().astype(np.int64), counts[history.terms.docs]) * self._files
            + self._file_of_pairs[rows]
        )
        distinct, places = np.unique(keys, return_inverse=True)
        sums = sum_by_key(places, np.repeat(history.terms.counts, counts[history.terms.docs]), len(distinct))
        by_file = Postings.of(self._files, distinct // max(self._files, 1), distinct % max(self._files, 1), sums)
        self._by_file = _open_index(history.words, by_file)
        self._by_commit = _open_index(history.words, history.terms)
        self.trust = min(max(history.terms.documents / _MIN_COMMITS - 1, 0.0), 1.0)

    def score_files(self, tokens: Sequence[str]) -> Scores:
        """Score each file by BM25, with all its commits' text as one document."""
        return self._by_file.get_scores(tokens)

    def score_commits(self, tokens: Sequence[str]) -> Scores:
        """Sum the scores of the best matching commits that touched each file."""
        scores = self._by_commit.get_scores(tokens)
        if len(scores) > _BEST_COMMITS:
            scores[scores < np.partition(scores, -_BEST_COMMITS)[-_BEST_COMMITS]] = 0.0
        return sum_by_key(self._file_of_pairs, scores[self._commit_of_pairs], self._files)


def _open_index(words: Vocabulary, postings: Postings) -> Bm25Index:
    frequencies: Longs = np.zeros(len(words), dtype=np.int64)
    frequencies[postings.terms] = np.diff(postings.starts)
    live = np.arange(postings.documents)
    return Bm25Index(words, PostingsStack([postings], live), postings.lengths(), frequencies, k1=_K1)
