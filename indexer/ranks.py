"""How central each chunk is in the graph of who uses whose names: a signal of the ranking."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from indexer.calls.graph import page_rank
from indexer.snapshot import Snapshot

_MOST_DEFINERS = 3  # a name that more places define does not tell which of them is meant
_LINE_BITS = 32


def ranked(snapshot: Snapshot, uses: Iterable[tuple[int, str, int]]) -> Snapshot:
    """The snapshot with its chunks ranked by all uses of names: catalog file id, name and line each."""
    return replace(snapshot, rank=page_rank(len(snapshot.chunks.ids), set(_edges(snapshot, uses))))


def _edges(snapshot: Snapshot, uses: Iterable[tuple[int, str, int]]) -> Iterator[tuple[int, int]]:
    files, names, lines = array("q"), [], array("q")
    for file, name, line in uses:
        files.append(file)
        names.append(name.lower())
        lines.append(line)
    if not names:
        return
    sources = _chunks_at(snapshot, np.array(files), np.array(lines)).tolist()
    for source, name in zip(sources, names, strict=True):
        definers = snapshot.by_name.get(name, ())
        if len(definers) <= _MOST_DEFINERS:
            for definer in definers:
                target = int(snapshot.definitions.chunk[definer])
                if target != source:
                    yield source, target


def _chunks_at(snapshot: Snapshot, files: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """The chunk that each line of each file (by catalog id) lies in, or the one before it."""
    by_id = np.argsort(snapshot.files.ids)
    ordinals = by_id[np.searchsorted(snapshot.files.ids[by_id], files)]
    starts = (snapshot.chunks.file.astype(np.int64) << _LINE_BITS) + snapshot.chunks.start
    return np.maximum(np.searchsorted(starts, (ordinals << _LINE_BITS) + lines, side="right") - 1, 0)
