"""What one retrieval request brings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieved:
    """The result of one request: evidence, what surrounds it, how much there was in all, and notes for the answer.

    `facts` are what the evidence itself does not say, by name.
    """

    refs: Sequence[EvidenceRef]
    around: Sequence[EvidenceRef] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    relaxed: str = ""
    failures: tuple[str, ...] = ()


Fetch = Callable[[CodeSearch, RetrievalRequest], Awaitable[Retrieved]]
