"""The limits on the time and memory that a parser may spend on one file."""

from __future__ import annotations

from dataclasses import dataclass

OUT_OF_MEMORY = 3  # the exit code of a parser that may take no more


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Seconds and bytes; what goes beyond them is kept as plain text.

    `tree` is the CPU time after which a syntax tree is given up, `cpu` that after which the parser is ended whatever
    it does, `wall` the time after which nobody waits for it, and `idle` how long it waits for the next file.
    """

    tree: float = 3.0
    cpu: float = 6.0
    wall: float = 60.0
    memory: int = 1 << 30
    idle: float = 60.0
