"""Snowflakes: ids that tell the time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

EPOCH = 1_420_070_400_000  # the first millisecond of 2015


class Snowflakes:
    """Gives ids that grow, each carrying the millisecond in which it was given."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = 0

    def next(self) -> str:
        """Make an id that was never given before."""
        self._last = max(self._last + 1, (int(self._now() * 1000) - EPOCH) << 22)
        return str(self._last)


def time_of(snowflake: str) -> float:
    """Read the seconds since the epoch out of an id."""
    return ((int(snowflake) >> 22) + EPOCH) / 1000


def iso(seconds: float) -> str:
    """Write a time as Discord does."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
