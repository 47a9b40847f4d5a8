"""The limits on the time and memory that a parser may spend on one file."""

from __future__ import annotations

from dataclasses import dataclass

OUT_OF_MEMORY = 3  # the exit code of a parser that may take no more


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits in seconds and bytes; a file that exceeds one is kept as plain text.

    `tree` is the CPU time for a syntax tree, `cpu` the CPU time after which the parser is killed, `wall` the longest
    wait for a reply, and `idle` the time that a parser waits for its next file.
    """

    tree: float = 3.0
    cpu: float = 6.0
    wall: float = 60.0
    memory: int = 1 << 30
    idle: float = 60.0
