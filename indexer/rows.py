"""Arithmetic with the rows of tables that lie one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def compute_offsets(sizes: Sequence[int]) -> list[int]:
    """Where each of several tables begins."""
    return [0, *accumulate(sizes)][:-1]


def compute_starts(counts: NDArray[Any]) -> Rows:
    """Where each of several runs begins that lie one behind the other."""
    starts: Rows = np.cumsum(counts, dtype=np.int64) - counts
    return starts


def expand_spans(starts: NDArray[Any], counts: NDArray[Any]) -> Rows:
    """The rows of several runs, one run behind the other."""
    shifts = np.repeat(starts - compute_starts(counts), counts)
    return shifts + np.arange(len(shifts), dtype=np.int64)


def invert_rows(rows: NDArray[Any], size: int) -> NDArray[np.int32]:
    """The place of each of `size` rows in a list of them, -1 for one that is not in it."""
    places = np.full(size, -1, dtype=np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return places
