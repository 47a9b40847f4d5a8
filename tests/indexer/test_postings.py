"""Postings: counts by term survive renumbering and merging."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexer.postings import Postings, PostingsBuilder, Vocabulary

Bags = list[list[str]]
bags = st.lists(st.lists(st.sampled_from("a b c d e f".split()), max_size=8), max_size=8)


def build(documents: Bags, vocabulary: Vocabulary) -> Postings:
    builder = PostingsBuilder(vocabulary)
    for number, bag in enumerate(documents):
        builder.add(number, bag)
    return builder.build(len(documents))


def read(postings: Postings, vocabulary: Vocabulary) -> list[Counter[str]]:
    found: list[Counter[str]] = [Counter() for _ in range(postings.documents)]
    for term in range(postings.terms):
        for document, count in zip(*postings.documents_of(term), strict=True):
            found[document][vocabulary[term]] = int(count)
    return found


@given(bags)
def test_what_was_added_can_be_read_back(documents: Bags) -> None:
    vocabulary = Vocabulary()
    postings = build(documents, vocabulary)
    assert read(postings, vocabulary) == [Counter(bag) for bag in documents]
    assert postings.lengths().tolist() == [len(bag) for bag in documents]


@given(bags, bags)
def test_keeping_some_and_adding_others_equals_building_from_all(old: Bags, new: Bags) -> None:
    vocabulary = Vocabulary()
    kept = [number for number in range(len(old)) if number % 2]
    numbers = np.full(len(old), -1, dtype=np.int32)
    numbers[kept] = np.arange(len(kept))
    before = build(old, vocabulary).renumbered(numbers, len(kept) + len(new))
    behind = np.arange(len(kept), len(kept) + len(new), dtype=np.int32)
    merged = before.merged(build(new, vocabulary).renumbered(behind, len(kept) + len(new)))
    assert read(merged, vocabulary) == [Counter(old[number]) for number in kept] + [Counter(bag) for bag in new]


def test_a_term_keeps_its_number_when_others_are_added() -> None:
    vocabulary = Vocabulary(["a", "b"])
    copy = vocabulary.copy()
    list(copy.add(["c"]))
    assert (copy.number("b"), vocabulary.number("c"), len(copy)) == (1, None, 3)


def test_a_term_beyond_the_postings_has_no_documents() -> None:
    vocabulary = Vocabulary()
    postings = build([["a"]], vocabulary)
    assert postings.documents_of(next(iter(vocabulary.add(["later"]))))[0].tolist() == []
