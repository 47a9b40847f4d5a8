"""Scores each chunk's centrality in the graph of uses of names, a signal of the ranking."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from indexer.search.columns import expand_spans
from indexer.search.segment import Floats
from indexer.search.snapshot import Snapshot

_MAX_DEFINERS = 3  # a name that more places define does not tell which of them is meant
_LINE_BITS = 32
_DAMPING = 0.85
_SETTLED = 1e-6  # mean change of a rank in a round
_MAX_ROUNDS = 100  # enough by far: a round leaves at most 85 % of the change
_BLOCK = 100_000  # uses that are in memory at a time

Edges = tuple[NDArray[np.int64], NDArray[np.int64]]


def score_centrality(snapshot: Snapshot, uses: Iterable[tuple[int, str, int]]) -> Floats:
    """Rank the chunks by all uses of names: catalog file id, name and line each."""
    return compute_page_rank(len(snapshot.chunks.ids), _find_edges(snapshot, uses))


def _find_edges(snapshot: Snapshot, uses: Iterable[tuple[int, str, int]]) -> Edges:
    """Find the chunks that use a name and those that define it, each pair once."""
    table, nodes = snapshot.definitions, len(snapshot.chunks.ids)
    by_name = np.argsort(table.names, kind="stable")
    definers = table.chunk[by_name].astype(np.int64)
    starts = np.searchsorted(table.names[by_name], np.arange(len(snapshot.names) + 1))
    pairs = [np.empty(0, dtype=np.int64)]
    rest = iter(uses)
    while block := list(islice(rest, _BLOCK)):
        numbered = ((file, snapshot.names.number(name.lower()), line) for file, name, line in block)
        known = [(file, number, line) for file, number, line in numbered if number is not None]
        files, names, lines = np.array(known, dtype=np.int64).reshape(-1, 3).T
        counts = starts[names + 1] - starts[names]
        counts[counts > _MAX_DEFINERS] = 0
        sources = np.repeat(_find_chunks(snapshot, files, lines), counts)
        targets = definers[expand_spans(starts[names], counts)]
        pairs.append(np.unique((sources * nodes + targets)[sources != targets]))
    sources, targets = np.divmod(np.unique(np.concatenate(pairs)), max(nodes, 1))
    return sources, targets


def _find_chunks(snapshot: Snapshot, files: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the chunk that contains each line of each file (by catalog id), or the one before it."""
    by_id = np.argsort(snapshot.files.ids)
    ordinals = by_id[np.searchsorted(snapshot.files.ids[by_id], files)]
    starts = (snapshot.chunks.file.astype(np.int64) << _LINE_BITS) + snapshot.chunks.start
    return np.maximum(np.searchsorted(starts, (ordinals << _LINE_BITS) + lines, side="right") - 1, 0)


def compute_page_rank(nodes: int, edges: Edges) -> NDArray[np.float32]:
    """Compute the centrality of each node, 1 on average; `edges` are distinct pairs of their beginnings and ends.

    Source: Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web Search Engine", 1998.
    """
    sources, targets = edges
    uses = np.bincount(sources, minlength=nodes)
    ranks = np.ones(nodes)
    for _ in range(_MAX_ROUNDS if len(sources) else 0):
        shares = ranks / np.maximum(uses, 1)
        passed_on = np.bincount(targets, weights=shares[sources], minlength=nodes)
        # What a node without uses has is everybody's.
        new = 1 - _DAMPING + _DAMPING * (passed_on + ranks[uses == 0].sum() / nodes)
        change = np.abs(new - ranks).sum()
        ranks = new
        if change < _SETTLED * nodes:
            break
    return ranks.astype(np.float32)
