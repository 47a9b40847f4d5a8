"""Ranking signals of chunks and files beyond their text: names, paths, commits, the rest of the file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from indexer.search.postings import PostingsStack, sum_by_key
from indexer.search.snapshot import Snapshot
from indexer.text.tokens import IDENTIFIER, QUESTION_STOP_WORDS, stem, tokenize_question

Scores = NDArray[np.float64]

_CODE_LIKE = re.compile(r"[a-z][A-Z]|_|\d|::|^[A-Z][a-z]+[A-Z]|^[A-Z]{2,}[a-z]")
_MAX_REPEATS = 3  # a word repeated in a question says little more each time


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchQuestion:
    """A question for the ranking: its tokens, the weights of distinct ones, and the names it may mean.

    `compounds` are tokens of the repository made from two neighbouring words: `websocket`,
    `web_socket`.
    """

    text: str
    tokens: tuple[str, ...]
    weights: dict[str, float]
    names: tuple[str, ...]
    compounds: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The sum of the distinct tokens' weights, never zero."""
        return sum(self.weights.values()) or 1.0


def read_question(snapshot: Snapshot, text: str) -> SearchQuestion:
    """Tokenise a question against a snapshot's vocabulary."""
    tokens = [
        token for token, count in Counter(tokenize_question(text)).items() for _ in range(min(count, _MAX_REPEATS))
    ]
    return SearchQuestion(
        text=text,
        tokens=tuple(tokens),
        weights={token: snapshot.lexical.weight(token) for token in dict.fromkeys(tokens)},
        names=tuple(_find_names(text)),
        compounds=tuple(word for word in _join_pairs(text, tokens) if snapshot.lexical.weight(word)),
    )


def _find_names(text: str) -> list[str]:
    """Find possible definitions among the words: the last of a very short question, else those that look like code."""
    words: list[str] = IDENTIFIER.findall(text)
    is_symbol = len(words) <= 2 or ("::" in text and " " not in text.strip())
    if is_symbol:
        return words[-1:]
    return [word for word in words if _CODE_LIKE.search(word)]


def _join_pairs(text: str, tokens: list[str]) -> list[str]:
    """Return the joined forms of two neighbouring words, except existing tokens."""
    words = [word.lower() for word in IDENTIFIER.findall(text)]
    joined: dict[str, None] = {}
    for one, other in pairwise(words):
        if not {one, other} & QUESTION_STOP_WORDS:
            joined.update(dict.fromkeys((one + other, stem(one + other), f"{one}_{other}")))
    return [word for word in joined if word not in tokens]


def scale_to_unit(scores: Scores) -> Scores:
    """Scale scores so that the best is 1; all stay 0 if none is positive."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


def score_coherence(snapshot: Snapshot, scores: Scores, *, depth: int) -> Scores:
    """Score each chunk by its file's share of the top: several good chunks make the file likelier."""
    depth = min(len(scores), depth)
    floor = np.partition(scores, -depth)[-depth]
    top = np.where(scores >= floor, scores, 0.0)
    by_file = sum_by_key(snapshot.chunks.file, top, len(snapshot.files.paths))
    return np.where(scores > 0, scale_to_unit(by_file)[snapshot.chunks.file], 0.0)


def score_exact_names(snapshot: Snapshot, question: SearchQuestion) -> Scores:
    """Score chunks that define a name of the question; types weigh more, one-liners and common names less."""
    scores = np.zeros(len(snapshot.chunks.ids))
    table = snapshot.definitions
    for name in question.names:
        folded = name.lower()
        ordinals = snapshot.find_definitions(folded.strip("_$")).tolist() or snapshot.find_definitions(folded).tolist()
        crowd = 1 + 0.1 * min(len(ordinals), 20)
        for ordinal in ordinals:
            value = (1.0 if table.is_type[ordinal] else 0.7) * (1.0 if table.lines[ordinal] > 3 else 0.75) / crowd
            chunk = table.chunk[ordinal]
            scores[chunk] = max(scores[chunk], value)
    return scores


def score_partial_names(snapshot: Snapshot, question: SearchQuestion) -> Scores:
    """Score how well the question's words name the best definition of each chunk."""
    table = snapshot.definitions
    scores = np.zeros(len(snapshot.chunks.ids))
    matched = _sum_matched_weights(snapshot, question, snapshot.definition_terms)
    found = np.flatnonzero(matched)
    if len(found):
        share = np.minimum(1.0, matched[found] / question.total)
        coverage = share * np.minimum(1.0, matched[found] / snapshot.definition_weights[found])
        np.maximum.at(scores, table.chunk[found], coverage * np.where(table.is_type[found], 1.0, 0.8))
    return scores


def score_paths(snapshot: Snapshot, question: SearchQuestion, *, folder: float) -> Scores:
    """Score how well the question's words name each file, and with the weight of `folder` its folders."""
    topics = _sum_matched_weights(snapshot, question, snapshot.topic_terms)
    names = np.minimum(1.0, topics / question.total) * np.minimum(1.0, topics / snapshot.topic_weights)
    folders = _sum_matched_weights(snapshot, question, snapshot.folder_terms)
    return names + folder * np.minimum(1.0, folders / question.total)


def score_history(snapshot: Snapshot, question: SearchQuestion, *, files: float, commits: float) -> Scores:
    """Score how well commits about each file match the question; empty if there are too few commits."""
    index = snapshot.history_index
    if not index.trust:
        return np.zeros(len(snapshot.files.paths))
    by_file = files * scale_to_unit(index.score_files(question.tokens))
    by_commit = commits * scale_to_unit(index.score_commits(question.tokens))
    return index.trust * (by_file + by_commit)


def _sum_matched_weights(snapshot: Snapshot, question: SearchQuestion, postings: PostingsStack) -> Scores:
    """Return the summed weight of the question's tokens and compounds in each live document of the postings."""
    matched = np.zeros(postings.documents)
    compounds = {word: snapshot.lexical.weight(word) for word in question.compounds}
    for token, weight in (question.weights | compounds).items():
        number = snapshot.terms.number(token)
        if number is not None and weight > 0:
            matched[postings.find_documents(number)[0]] += weight
    return matched[postings.live]
