"""The hybrid ranking: pure functions from a snapshot and a question to chunks, best first.

The recipe (score fusion of BM25, vectors and file BM25, boosts for names and paths, penalties by path, decay within
a file) and its numbers come from measurements over 33 public repositories; `benchmarks/retrieval.py` repeats them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from indexer.search.postings import PostingsStack, sum_by_key
from indexer.search.snapshot import Snapshot
from indexer.text.tokens import IDENTIFIER, tokenize_question
from indexer.types import SearchMode

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]
Fusion = Literal["score", "rrf"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankingWeights:
    """The weights of the ranking. The defaults are what won on the development repositories."""

    fusion: Fusion = "score"
    lexical: float = 1.0
    vector: float = 1.5
    file: float = 0.3
    vector_depth: int = 1000
    long_question: int = 8  # tokens; beyond this a static embedding blurs, so its weight falls
    long_question_vector: float = 0.1
    rrf_k: int = 20
    rrf_depth: int = 200
    coherence: float = 0.3
    coherence_depth: int = 100
    exact_name: float = 0.5
    partial_name: float = 0.2
    path: float = 1.0
    folder: float = 0.25
    rank: float = 0.2
    test: float = 0.65
    doc: float = 0.5
    config: float = 0.8
    example: float = 0.5
    secondary: float = 0.85
    same_file_decay: float = 0.5
    candidates: int = 300


_CODE_LIKE = re.compile(r"[a-z][A-Z]|_|\d|::|^[A-Z][a-z]+[A-Z]|^[A-Z]{2,}[a-z]")
_ABOUT_TESTS = re.compile(r"\b(tests?|testing|spec|fixtures?|test case|unit)\b")
_ABOUT_DOCS = re.compile(r"\b(docs?|documentation|documented|readme|changelog|tutorial)\b")
_ABOUT_EXAMPLES = re.compile(r"\b(examples?|sample|demo|tutorial|benchmark)\b")
_MOST_REPEATS = 3  # a word repeated in a question says little more each time


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchQuestion:
    """A question as the ranking reads it: its tokens, its distinct tokens' weights, and the names it may mean."""

    text: str
    tokens: tuple[str, ...]
    weights: dict[str, float]
    names: tuple[str, ...]

    @property
    def total(self) -> float:
        """The sum of the distinct tokens' weights, never zero."""
        return sum(self.weights.values()) or 1.0


def read_question(snapshot: Snapshot, text: str) -> SearchQuestion:
    """Tokenise a question against a snapshot's vocabulary."""
    tokens = [
        token for token, count in Counter(tokenize_question(text)).items() for _ in range(min(count, _MOST_REPEATS))
    ]
    return SearchQuestion(
        text=text,
        tokens=tuple(tokens),
        weights={token: snapshot.lexical.weight(token) for token in dict.fromkeys(tokens)},
        names=tuple(_find_names(text)),
    )


def _find_names(text: str) -> list[str]:
    """The words of a question that may be definitions: the last of a very short one, else those that look like code."""
    words: list[str] = IDENTIFIER.findall(text)
    is_symbol = len(words) <= 2 or ("::" in text and " " not in text.strip())
    if is_symbol:
        return words[-1:]
    return [word for word in words if _CODE_LIKE.search(word)]


def rank_chunks(
    snapshot: Snapshot,
    text: str,
    cosines: Scores | None,
    *,
    mode: SearchMode = "hybrid",
    mask: Mask | None = None,
    limit: int = 10,
    recipe: RankingWeights | None = None,
) -> list[tuple[int, float]]:
    """Rank chunk ordinals for a question; `mask` says which chunks may be returned, `cosines` has one for each.

    Chunks without any score are not returned, so the list can be shorter than `limit`.
    """
    recipe = recipe or RankingWeights()
    question = read_question(snapshot, text)
    allowed = mask if mask is not None else np.ones(len(snapshot.chunks.ids), dtype=bool)
    if not allowed.any():
        return []
    scores = fuse_scores(snapshot, question, cosines, mode=mode, allowed=allowed, recipe=recipe)
    scores = boost_scores(snapshot, question, scores, recipe) * make_penalties(snapshot, text, recipe)
    scores[~allowed] = 0.0
    return diversify(snapshot.chunks.file, scores, limit=limit, recipe=recipe)


def score_cosine(snapshot: Snapshot, query: NDArray[np.float32]) -> Scores:
    """Cosine of each chunk's vector with the query's."""
    return snapshot.cosines(query)


def fuse_scores(
    snapshot: Snapshot,
    question: SearchQuestion,
    cosines: Scores | None,
    *,
    mode: SearchMode,
    allowed: Mask,
    recipe: RankingWeights,
) -> Scores:
    """Put the lexical, vector and file scores together; the best of the allowed chunks has 1."""
    parts = _score_parts(snapshot, question, cosines, mode, recipe)
    for _, part in parts:
        part[~allowed] = 0.0
    if recipe.fusion == "rrf":
        total = sum((weight * _score_by_rank(part, recipe) for weight, part in parts), start=np.zeros(len(allowed)))
    else:
        total = sum((weight * _scale_to_unit(part) for weight, part in parts), start=np.zeros(len(allowed)))
    return _scale_to_unit(total)


def _score_parts(
    snapshot: Snapshot, question: SearchQuestion, cosines: Scores | None, mode: SearchMode, recipe: RankingWeights
) -> list[tuple[float, Scores]]:
    parts: list[tuple[float, Scores]] = []
    if mode != "vector":
        by_file = snapshot.lexical.score_groups(question.tokens, snapshot.file_of_rows, snapshot.files.tokens)
        parts.append((recipe.lexical, snapshot.lexical.scores(question.tokens)))
        parts.append((recipe.file, by_file[snapshot.chunks.file]))
    if cosines is not None and mode != "lexical":
        is_long = mode == "hybrid" and len(question.tokens) > recipe.long_question
        weight = recipe.vector * (recipe.long_question_vector if is_long else 1.0)
        # Cosines have no natural zero: what counts is how far each stands above the `vector_depth`-th best.
        depth = min(len(cosines), recipe.vector_depth)
        parts.append((weight, np.maximum(cosines - np.partition(cosines, -depth)[-depth], 0.0)))
    return parts


def _scale_to_unit(scores: Scores) -> Scores:
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


def _score_by_rank(scores: Scores, recipe: RankingWeights) -> Scores:
    """Reciprocal rank fusion's share of one ranking (Cormack, Clarke and Buettcher, SIGIR 2009)."""
    shares = np.zeros(len(scores))
    best = sort_best_first(scores, recipe.rrf_depth)
    shares[best] = 1.0 / (recipe.rrf_k + 1 + np.arange(len(best)))
    shares[scores <= 0] = 0.0
    return shares


def sort_best_first(scores: Scores, count: int) -> NDArray[np.int64]:
    """The places of the `count` highest scores, highest first, the earlier of equals first."""
    if count < len(scores):
        floor = np.partition(scores, -count)[-count]
        places = np.flatnonzero(scores >= floor)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")][:count]


def boost_scores(snapshot: Snapshot, question: SearchQuestion, scores: Scores, recipe: RankingWeights) -> Scores:
    """Add what names, paths, the rest of the file and the call graph say."""
    scores = scores + recipe.coherence * _score_coherence(snapshot, scores, recipe)
    scores += recipe.exact_name * _score_exact_names(snapshot, question)
    scores += recipe.partial_name * _score_partial_names(snapshot, question)
    scores += recipe.path * _score_paths(snapshot, question, recipe)[snapshot.chunks.file]
    most = np.log1p(snapshot.chunks.rank.max(initial=0.0))
    if most > 0:
        scores *= 1 + recipe.rank * snapshot.log_rank / most
    return scores


def _score_coherence(snapshot: Snapshot, scores: Scores, recipe: RankingWeights) -> Scores:
    """How much of the top the chunk's file holds: several good chunks make the file likelier."""
    depth = min(len(scores), recipe.coherence_depth)
    floor = np.partition(scores, -depth)[-depth]
    top = np.where(scores >= floor, scores, 0.0)
    by_file = sum_by_key(snapshot.chunks.file, top, len(snapshot.files.paths))
    return np.where(scores > 0, _scale_to_unit(by_file)[snapshot.chunks.file], 0.0)


def _score_exact_names(snapshot: Snapshot, question: SearchQuestion) -> Scores:
    """Chunks where a name of the question is defined; types weigh more, one-liners and common names less."""
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


def _score_partial_names(snapshot: Snapshot, question: SearchQuestion) -> Scores:
    """How well the best definition of each chunk is named by the question's words."""
    table = snapshot.definitions
    scores = np.zeros(len(snapshot.chunks.ids))
    matched = _sum_matched_weights(snapshot, question, snapshot.definition_terms)
    found = np.flatnonzero(matched)
    if len(found):
        coverage = matched[found] / question.total * matched[found] / snapshot.definition_weights[found]
        np.maximum.at(scores, table.chunk[found], coverage * np.where(table.is_type[found], 1.0, 0.8))
    return scores


def _score_paths(snapshot: Snapshot, question: SearchQuestion, recipe: RankingWeights) -> Scores:
    """How well each file's name, and less so its folders, are named by the question's words."""
    topics = _sum_matched_weights(snapshot, question, snapshot.topic_terms)
    names = np.minimum(1.0, topics / question.total) * np.minimum(1.0, topics / snapshot.topic_weights)
    folders = _sum_matched_weights(snapshot, question, snapshot.folder_terms)
    return names + recipe.folder * np.minimum(1.0, folders / question.total)


def _sum_matched_weights(snapshot: Snapshot, question: SearchQuestion, postings: PostingsStack) -> Scores:
    """The summed weight of the question's tokens in each live document of the postings."""
    matched = np.zeros(postings.documents)
    for token, weight in question.weights.items():
        number = snapshot.terms.number(token)
        if number is not None and weight > 0:
            matched[postings.find_documents(number)[0]] += weight
    return matched[postings.live]


def make_penalties(snapshot: Snapshot, text: str, recipe: RankingWeights) -> Scores:
    """A factor for each chunk: tests, documentation and the like count less unless the question is about them."""
    lowered = text.lower()
    factors = np.ones(len(snapshot.files.paths))
    for flag, factor, subject in (
        ("test", recipe.test, _ABOUT_TESTS),
        ("doc", recipe.doc, _ABOUT_DOCS),
        ("example", recipe.example, _ABOUT_EXAMPLES),
        ("config", recipe.config, None),
        ("secondary", recipe.secondary, None),
    ):
        if subject is None or not subject.search(lowered):
            factors[snapshot.flags[flag]] *= factor
    return factors[snapshot.chunks.file]


def diversify(
    files: NDArray[np.int32], scores: Scores, *, limit: int, recipe: RankingWeights
) -> list[tuple[int, float]]:
    """The best chunks, where the k-th of one file counts decay^k: other files come up too."""
    best = sort_best_first(scores, max(recipe.candidates, limit))
    best = best[scores[best] > 0]
    counts: dict[int, int] = {}
    before = np.empty(len(best))
    for place, file in enumerate(files[best].tolist()):
        before[place] = counts.get(file, 0)
        counts[file] = counts.get(file, 0) + 1
    decayed = scores[best] * recipe.same_file_decay**before
    order = np.argsort(-decayed, kind="stable")[:limit]
    return list(zip(best[order].tolist(), decayed[order].tolist(), strict=True))


def make_chunk_mask(snapshot: Snapshot, files: Mask) -> Mask:
    """The chunks of the files that are allowed."""
    return files[snapshot.chunks.file]
