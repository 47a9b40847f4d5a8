"""Scores how central each chunk is in the graph of uses of names: a signal of the ranking."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from indexer.search.segment import Floats
from indexer.search.snapshot import Snapshot

_MOST_DEFINERS = 3  # a name that more places define does not tell which of them is meant
_LINE_BITS = 32
_DAMPING = 0.85
_SETTLED = 1e-6  # mean change of a rank in a round
_MOST_ROUNDS = 100  # enough by far: a round leaves at most 85 % of the change


def score_centrality(snapshot: Snapshot, uses: Iterable[tuple[int, str, int]]) -> Floats:
    """Rank the chunks by all uses of names: catalog file id, name and line each."""
    return compute_page_rank(len(snapshot.chunks.ids), set(_find_edges(snapshot, uses)))


def _find_edges(snapshot: Snapshot, uses: Iterable[tuple[int, str, int]]) -> Iterator[tuple[int, int]]:
    files, names, lines = array("q"), [], array("q")
    for file, name, line in uses:
        files.append(file)
        names.append(snapshot.names.number(name.lower()))
        lines.append(line)
    if not names:
        return
    definers = _Definers(snapshot)
    sources = _find_chunks(snapshot, np.array(files), np.array(lines)).tolist()
    for source, name_number in zip(sources, names, strict=True):
        targets = definers.chunks_of(name_number)
        if len(targets) <= _MOST_DEFINERS:
            yield from ((source, target) for target in targets if target != source)


class _Definers:
    """The chunks that define each name."""

    def __init__(self, snapshot: Snapshot) -> None:
        table = snapshot.definitions
        by_name = np.argsort(table.names, kind="stable")
        self._chunks: list[int] = table.chunk[by_name].tolist()
        self._starts: list[int] = np.searchsorted(table.names[by_name], np.arange(len(snapshot.names) + 1)).tolist()

    def chunks_of(self, name: int | None) -> list[int]:
        return [] if name is None else self._chunks[self._starts[name] : self._starts[name + 1]]


def _find_chunks(snapshot: Snapshot, files: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """The chunk that each line of each file (by catalog id) lies in, or the one before it."""
    by_id = np.argsort(snapshot.files.ids)
    ordinals = by_id[np.searchsorted(snapshot.files.ids[by_id], files)]
    starts = (snapshot.chunks.file.astype(np.int64) << _LINE_BITS) + snapshot.chunks.start
    return np.maximum(np.searchsorted(starts, (ordinals << _LINE_BITS) + lines, side="right") - 1, 0)


def compute_page_rank(nodes: int, edges: Iterable[tuple[int, int]]) -> NDArray[np.float32]:
    """How central each node is, 1 on average; `edges` are distinct pairs (from, to).

    Source: Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web Search Engine", 1998.
    """
    ends = np.fromiter(chain.from_iterable(edges), np.int64)
    sources, targets = ends[0::2], ends[1::2]
    uses = np.bincount(sources, minlength=nodes)
    ranks = np.ones(nodes)
    for _ in range(_MOST_ROUNDS if len(ends) else 0):
        shares = ranks / np.maximum(uses, 1)
        passed_on = np.bincount(targets, weights=shares[sources], minlength=nodes)
        # What a node without uses has is everybody's.
        new = 1 - _DAMPING + _DAMPING * (passed_on + ranks[uses == 0].sum() / nodes)
        change = np.abs(new - ranks).sum()
        ranks = new
        if change < _SETTLED * nodes:
            break
    return ranks.astype(np.float32)
