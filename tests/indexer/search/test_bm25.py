"""BM25: the sparse scores are those of rank-bm25's own loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from indexer.search.bm25 import Bm25Index
from indexer.search.postings import PostingsBuilder, PostingsStack, Vocabulary

words = st.sampled_from("parse date retry policy http client cache error".split())
corpora = st.lists(st.lists(words, max_size=20), min_size=1, max_size=12)


def index(documents: list[list[str]]) -> Bm25Index:
    vocabulary = Vocabulary()
    builder = PostingsBuilder(vocabulary)
    for document in documents:
        builder.add(document)
    postings = builder.build()
    frequencies = np.bincount(builder.build_term_lists().terms, minlength=len(vocabulary))
    return Bm25Index(vocabulary, PostingsStack([postings], np.arange(len(documents))), postings.lengths(), frequencies)


@given(corpora, st.lists(st.one_of(words, st.just("unknown")), max_size=12))
def test_sparse_scores_equal_those_of_the_loop(documents: list[list[str]], query: list[str]) -> None:
    assume(any(documents))
    bm25, plain = index(documents), BM25Okapi(documents)
    plain.idf = {word: bm25.weight(word) for word in plain.idf}
    np.testing.assert_allclose(bm25.get_scores(query), plain.get_scores(query), rtol=0, atol=1e-6)


def test_a_word_in_most_documents_still_counts_for_something() -> None:
    bm25 = index([["error"], ["error"], ["error"], ["retry"]])
    assert bm25.get_scores(["error"])[0] > 0


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    bm25 = index([["error", "retry"], ["error"], ["error"]])
    assert bm25.weight("retry") > bm25.weight("error") > bm25.weight("unknown") == 0


def test_grouped_scores_equal_those_of_the_documents_joined() -> None:
    documents = [["retry", "retry", "http"], ["policy"], ["retry", "cache"], ["date"]]
    groups = np.array([0, 0, 1, 1], dtype=np.int32)
    joined = index([documents[0] + documents[1], documents[2] + documents[3]])
    grouped = index(documents).score_groups(["retry", "policy"], groups, np.array([4, 3]))
    np.testing.assert_allclose(grouped, joined.get_scores(["retry", "policy"]))


def test_documents_without_any_token_score_nothing() -> None:
    assert index([[], []]).get_scores(["retry"]) == pytest.approx([0, 0])
