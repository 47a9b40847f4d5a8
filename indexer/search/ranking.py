"""The hybrid ranking: pure functions from a snapshot and a question to chunks, best first.

The recipe (score fusion of BM25, vectors and file BM25, boosts for names and paths, penalties by path, decay within
a file) and its numbers come from measurements over 33 public repositories; `benchmarks/retrieval.py` repeats them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from indexer.search.signals import (
    Scores,
    SearchQuestion,
    read_question,
    scale_to_unit,
    score_coherence,
    score_exact_names,
    score_history,
    score_partial_names,
    score_paths,
)
from indexer.search.snapshot import Snapshot
from indexer.types import SearchAim, SearchMode

Mask = NDArray[np.bool_]
Fusion = Literal["score", "rrf"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankingWeights:
    """The weights of the ranking. The defaults won on the development repositories."""

    fusion: Fusion = "score"
    lexical: float = 1.0
    vector: float = 1.5
    file: float = 0.3
    vector_depth: int = 1000
    long_question: int = 8  # tokens; beyond this a static embedding blurs, so its weight falls
    long_question_vector: float = 0.3
    short_chunk: float = 0.5  # of the average length; the vector of a shorter chunk is mostly that of its path
    rrf_k: int = 20
    rrf_depth: int = 200
    coherence: float = 0.3
    long_question_coherence: float = 0.15
    coherence_depth: int = 100
    exact_name: float = 0.5
    partial_name: float = 0.2
    path: float = 1.0
    folder: float = 0.25
    rank: float = 0.2
    history_files: float = 0.2
    history_commits: float = 0.2
    test: float = 0.65
    doc: float = 0.5
    config: float = 0.8
    example: float = 0.5
    secondary: float = 0.85
    plain: float = 0.6
    same_file_decay: float = 0.5
    passage_decay: float = 0.85  # in its place where passages are to be read
    candidates: int = 300


_ABOUT_TESTS = re.compile(r"\b(tests?|testing|spec|fixtures?|test case|unit)\b")
_ABOUT_DOCS = re.compile(r"\b(docs?|documentation|documented|readme|changelog|tutorial)\b")
_ABOUT_EXAMPLES = re.compile(r"\b(examples?|sample|demo|tutorial|benchmark)\b")


def rank_chunks(
    snapshot: Snapshot,
    text: str,
    cosines: Scores | None,
    *,
    mode: SearchMode = "hybrid",
    aim: SearchAim = "places",
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
    decay = recipe.passage_decay if aim == "passages" else recipe.same_file_decay
    return diversify(snapshot.chunks.file, scores, decay=decay, count=max(recipe.candidates, limit))[:limit]


def fuse_scores(
    snapshot: Snapshot,
    question: SearchQuestion,
    cosines: Scores | None,
    *,
    mode: SearchMode,
    allowed: Mask,
    recipe: RankingWeights,
) -> Scores:
    """Combine the lexical, vector and file scores; the best allowed chunk gets 1."""
    parts = _score_parts(snapshot, question, cosines, mode, recipe)
    for _, part in parts:
        part[~allowed] = 0.0
    if recipe.fusion == "rrf":
        total = sum((weight * _score_by_rank(part, recipe) for weight, part in parts), start=np.zeros(len(allowed)))
    else:
        total = sum((weight * scale_to_unit(part) for weight, part in parts), start=np.zeros(len(allowed)))
    return scale_to_unit(total)


def _score_parts(
    snapshot: Snapshot, question: SearchQuestion, cosines: Scores | None, mode: SearchMode, recipe: RankingWeights
) -> list[tuple[float, Scores]]:
    parts: list[tuple[float, Scores]] = []
    if mode != "vector":
        words = (*question.tokens, *question.compounds)
        by_file = snapshot.lexical.score_groups(words, snapshot.file_of_rows, snapshot.files.tokens)
        parts.append((recipe.lexical, snapshot.lexical.get_scores(words)))
        parts.append((recipe.file, by_file[snapshot.chunks.file]))
    if cosines is not None and mode != "lexical":
        is_long = mode == "hybrid" and len(question.tokens) > recipe.long_question
        weight = recipe.vector * (recipe.long_question_vector if is_long else 1.0)
        # Cosines have no natural zero: each counts by its distance above the `vector_depth`-th best.
        depth = min(len(cosines), recipe.vector_depth)
        above = np.maximum(cosines - np.partition(cosines, -depth)[-depth], 0.0)
        # Weigh each chunk's vector; that of a chunk of a few words speaks for its path alone
        tokens = snapshot.chunks.tokens
        parts.append((weight, above * np.minimum(1.0, tokens / max(recipe.short_chunk * float(tokens.mean()), 1.0))))
    return parts


def _score_by_rank(scores: Scores, recipe: RankingWeights) -> Scores:
    """Return reciprocal rank fusion's share of one ranking (Cormack, Clarke and Buettcher, SIGIR 2009)."""
    shares = np.zeros(len(scores))
    best = sort_best_first(scores, recipe.rrf_depth)
    shares[best] = 1.0 / (recipe.rrf_k + 1 + np.arange(len(best)))
    shares[scores <= 0] = 0.0
    return shares


def sort_best_first(scores: Scores, count: int) -> NDArray[np.int64]:
    """Return the positions of the `count` highest scores, highest first, the earlier of equals first."""
    if count < len(scores):
        floor = np.partition(scores, -count)[-count]
        places = np.flatnonzero(scores >= floor)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")][:count]


def boost_scores(snapshot: Snapshot, question: SearchQuestion, scores: Scores, recipe: RankingWeights) -> Scores:
    """Add the scores of names, paths, the rest of the file and the call graph."""
    is_long = len(question.tokens) > recipe.long_question
    coherence = recipe.long_question_coherence if is_long else recipe.coherence
    scores = scores + coherence * score_coherence(snapshot, scores, depth=recipe.coherence_depth)
    scores += recipe.exact_name * score_exact_names(snapshot, question)
    scores += recipe.partial_name * score_partial_names(snapshot, question)
    by_file = recipe.path * score_paths(snapshot, question, folder=recipe.folder)
    by_file += score_history(snapshot, question, files=recipe.history_files, commits=recipe.history_commits)
    scores += by_file[snapshot.chunks.file]
    most = np.log1p(snapshot.chunks.rank.max(initial=0.0))
    if most > 0:
        scores *= 1 + recipe.rank * snapshot.log_rank / most
    return scores


def make_penalties(snapshot: Snapshot, text: str, recipe: RankingWeights) -> Scores:
    """Return a factor for each chunk: tests, documentation and similar count less unless the question is about them."""
    lowered = text.lower()
    factors = np.ones(len(snapshot.files.paths))
    for flag, factor, subject in (
        ("test", recipe.test, _ABOUT_TESTS),
        ("doc", recipe.doc, _ABOUT_DOCS),
        ("example", recipe.example, _ABOUT_EXAMPLES),
        ("config", recipe.config, None),
        ("secondary", recipe.secondary, None),
        ("plain", recipe.plain, None),
    ):
        if subject is None or not subject.search(lowered):
            factors[snapshot.flags[flag]] *= factor
    return factors[snapshot.chunks.file]


def diversify(files: NDArray[np.int32], scores: Scores, *, decay: float, count: int) -> list[tuple[int, float]]:
    """Return some of the best chunks, weighting the k-th of one file by decay^k, so that other files appear too."""
    best = sort_best_first(scores, count)
    best = best[scores[best] > 0]
    counts: dict[int, int] = {}
    before = np.empty(len(best))
    for place, file in enumerate(files[best].tolist()):
        before[place] = counts.get(file, 0)
        counts[file] = counts.get(file, 0) + 1
    decayed = scores[best] * decay**before
    order = np.argsort(-decayed, kind="stable")
    return list(zip(best[order].tolist(), decayed[order].tolist(), strict=True))
