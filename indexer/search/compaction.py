"""Merges segments, so that neither their number nor their dead rows grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from indexer.search.columns import Ints, Rows, RowSelection, invert_rows, select_rows
from indexer.search.postings import Vocabulary, merge_postings, select_term_lists
from indexer.search.segment import POSTINGS, Floats, Segment
from indexer.search.snapshot import Snapshot, gather_rows

_GROWTH = 8  # a segment is merged with its successors unless it is this many times as large
_MAX_DEAD = 0.125  # of all chunks; beyond this everything is rebuilt
_MAX_WORDS = 2  # for each of the first segment, which had none that was not used


def compact_if_needed(snapshot: Snapshot) -> Snapshot:
    """Return the same snapshot with fewer segments, if that is due.

    The work grows with the changes: a large segment waits until many rows came after it, or died in
    it.
    """
    sizes = [segment.size for segment in snapshot.segments]
    first = len(sizes) - 1
    while first > 0 and sizes[first - 1] < _GROWTH * sum(sizes[first:]):
        first -= 1
    is_wasteful = (
        sum(sizes) - len(snapshot.selection.chunks) > _MAX_DEAD * sum(sizes)
        or len(snapshot.terms) > _MAX_WORDS * len(snapshot.segments[0].new_terms)
        or len(snapshot.names) > _MAX_WORDS * len(snapshot.segments[0].new_names)
    )
    if is_wasteful or (first == 0 and len(sizes) > 1):
        return compact(snapshot)
    return _merge_from(snapshot, first) if first < len(sizes) - 1 else snapshot


def compact(snapshot: Snapshot) -> Snapshot:
    """Return the same snapshot in one segment, in its own order and without unused words."""
    segment = _merge_segments(snapshot.segments, snapshot.order)
    terms = np.unique(np.concatenate([getattr(segment, name).terms for name in POSTINGS]))
    names = np.unique(segment.tables.definitions.names)
    words, all_names = snapshot.terms.words(), snapshot.names.words()
    segment = _renumber_words(segment, invert_rows(terms, len(words)), invert_rows(names, len(all_names)))
    segment = replace(
        segment,
        new_terms=tuple(words[term] for term in terms.tolist()),
        new_names=tuple(all_names[name] for name in names.tolist()),
    )
    return Snapshot(
        segments=(segment,),
        order=np.arange(len(snapshot.order), dtype=np.int64),
        frequencies=snapshot.frequencies[terms],
        terms=Vocabulary(segment.new_terms),
        names=Vocabulary(segment.new_names),
        history=snapshot.history,
    )


def replace_centrality(snapshot: Snapshot, rank: Floats) -> Snapshot:
    """Return the same snapshot in one segment, with new ranks of chunks."""
    whole = snapshot if len(snapshot.segments) == 1 else compact(snapshot)
    (segment,) = whole.segments
    column = np.ones(segment.size, dtype=np.float32)
    column[whole.selection.chunks] = rank
    chunks = replace(segment.tables.chunks, rank=column)
    return replace(whole, segments=(segment.replace_tables(tables=replace(segment.tables, chunks=chunks)),))


def _merge_from(snapshot: Snapshot, first: int) -> Snapshot:
    """Return the same snapshot with one segment instead of all from the first-th on."""
    before = sum(len(segment.tables.files.ids) for segment in snapshot.segments[:first])
    recent = np.flatnonzero(snapshot.order >= before)
    segment = _merge_segments(snapshot.segments[first:], snapshot.order[recent] - before)
    order = snapshot.order.copy()
    order[recent] = before + np.arange(len(recent))
    return replace(snapshot, segments=(*snapshot.segments[:first], segment), order=order)


def _merge_segments(segments: Sequence[Segment], files: Rows) -> Segment:
    """Return one segment with some files of several, in that order, and all their words."""
    tables = [segment.tables for segment in segments]
    selection = RowSelection.of(tables, files)
    rows = (selection.chunks, selection.definitions, selection.files, selection.files)
    parts: dict[str, Any] = {
        name: merge_postings([getattr(segment, name) for segment in segments], selected)
        for name, selected in zip(POSTINGS, rows, strict=True)
    }
    return Segment(
        tables=select_rows(tables, selection),
        new_terms=tuple(term for segment in segments for term in segment.new_terms),
        new_names=tuple(name for segment in segments for name in segment.new_names),
        terms_by_chunk=select_term_lists([segment.terms_by_chunk for segment in segments], selection.chunks),
        **parts,
        vectors=gather_rows([segment.vectors for segment in segments], selection.chunks),
    )


def _renumber_words(segment: Segment, terms: Ints, names: Ints) -> Segment:
    """Return the same segment with other numbers for words, in the same order."""
    definitions = segment.tables.definitions
    return replace(
        segment,
        tables=replace(segment.tables, definitions=replace(definitions, names=names[definitions.names])),
        terms_by_chunk=replace(segment.terms_by_chunk, terms=terms[segment.terms_by_chunk.terms]),
        **{name: replace(getattr(segment, name), terms=terms[getattr(segment, name).terms]) for name in POSTINGS},
    )
