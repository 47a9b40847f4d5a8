"""The ids of checkpoints: UUIDs of version 6, which sort by when LangGraph made them; the newest has the highest."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

_UUID_EPOCH = 0x01B2_1DD2_1381_4000  # 1970 in what a UUID counts: tenths of a microsecond since 1582

_DAMAGED = 1 << 59  # after the year 3400: what is counted on from there soon fits no UUID


def make_checkpoint_id(at: float) -> str:
    """Return the beginning of the ids that LangGraph gives at a time."""
    ticks = int(at * 10_000_000) + _UUID_EPOCH
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}"


def continue_ids(known: str) -> None:
    """Let the next ids of this process sort after one that it has read, whose maker's clock may be ahead of ours.

    LangGraph takes an id from the clock, unless that has not gone on since its last one: then it counts on from there.
    What was read is taken for its last one here.
    """
    from langgraph.checkpoint.base import id as library  # takes a second

    try:
        value = UUID(known).int
    except ValueError:  # which LangGraph has not made, and nothing is counted on from
        return
    ticks = value >> 80 << 12 | value >> 64 & 0xFFF
    generator = cast("Any", library)
    last = generator._last_v6_timestamp or 0  # noqa: SLF001 - nothing public can be given the time
    if last < ticks < _DAMAGED:
        generator._last_v6_timestamp = ticks  # noqa: SLF001
