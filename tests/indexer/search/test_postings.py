"""Postings: counts by term survive merging, and several read as one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.search import postings
from indexer.search.columns import Rows
from indexer.search.postings import (
    Postings,
    PostingsBuilder,
    PostingsStack,
    Vocabulary,
    merge_postings,
    select_term_lists,
)
from tests.fakes.bags import read_bags

Bags = list[list[str]]
bags = st.lists(st.lists(st.sampled_from("a b c d e f".split()), max_size=8), max_size=8)


def builder(documents: Bags, vocabulary: Vocabulary) -> PostingsBuilder:
    made = PostingsBuilder(vocabulary)
    for bag in documents:
        made.add(bag)
    return made


def build(documents: Bags, vocabulary: Vocabulary) -> Postings:
    return builder(documents, vocabulary).build()


def every_other(documents: Bags) -> Rows:
    """Some documents, the last ones first."""
    return np.arange(len(documents))[::-2].astype(np.int64)


@given(bags)
def test_what_was_added_can_be_read_back(documents: Bags) -> None:
    vocabulary = Vocabulary()
    postings = build(documents, vocabulary)
    stack = PostingsStack([postings], np.arange(len(documents)))
    assert read_bags(stack, vocabulary.words()) == [Counter(bag) for bag in documents]
    assert postings.lengths().tolist() == [len(bag) for bag in documents]
    for number, word in enumerate(vocabulary.words()):
        found, counts = stack.find_documents(number)
        assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == {
            place: bag.count(word) for place, bag in enumerate(documents) if word in bag
        }


@given(bags, bags)
def test_several_postings_read_as_one_and_merge_into_one(old: Bags, new: Bags) -> None:
    vocabulary = Vocabulary()
    made = [builder(old, vocabulary), builder(new, vocabulary)]
    parts = [each.build() for each in made]
    chosen = every_other(old + new)
    expected = [Counter((old + new)[place]) for place in chosen]
    assert read_bags(PostingsStack(parts, chosen), vocabulary.words()) == expected
    merged = PostingsStack([merge_postings(parts, chosen)], np.arange(len(chosen)))
    assert read_bags(merged, vocabulary.words()) == expected
    weights = np.arange(1.0, len(vocabulary) + 1)
    numbers = [[vocabulary.number(word) or 0 for word in bag] for bag in expected]
    assert PostingsStack(parts, chosen).weight_sums(weights).tolist() == [sum(weights[bag]) for bag in numbers]
    lists = select_term_lists([each.build_term_lists() for each in made], chosen)
    assert [sorted(lists.of(np.array([place])).tolist()) for place in range(len(chosen))] == list(map(sorted, numbers))


def test_entries_that_are_ordered_block_by_block_are_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    terms, docs, counts = (random.integers(0, most, 500, dtype=np.int32) for most in (40, 90, 70_000))
    docs[::7] = -1
    kept = np.flatnonzero(docs >= 0)[np.argsort(terms[docs >= 0], kind="stable")]
    monkeypatch.setattr(postings, "_BLOCK", 16)

    made = Postings.of(90, terms, docs, counts)

    assert made.term_of_entries().tolist() == terms[kept].tolist()
    assert made.docs.tolist() == docs[kept].tolist()
    assert made.counts.tolist() == np.minimum(counts[kept], 65_535).tolist()


def test_a_term_that_no_document_has_is_in_none() -> None:
    vocabulary = Vocabulary()
    postings = build([["a"]], vocabulary)
    (later,) = vocabulary.add(["later"])
    assert PostingsStack([postings, postings], np.arange(2)).find_documents(later)[0].tolist() == []


def test_a_word_keeps_its_number_when_others_are_added() -> None:
    vocabulary = Vocabulary(["a", "b"])
    assert list(vocabulary.add(["c", "a", "d"])) == [2, 0, 3]
    assert (vocabulary.number("b"), vocabulary.number("e"), len(vocabulary)) == (1, None, 4)
    assert (vocabulary.since(2), vocabulary.since(4)) == (("c", "d"), ())
    assert vocabulary.words() == ["a", "b", "c", "d"]
