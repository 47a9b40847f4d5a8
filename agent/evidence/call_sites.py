"""Calls as evidence: each call once, and those that one function makes side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from agent.evidence.refs import is_test_or_docs, make_call_ref
from agent.state import EvidenceRef, Role
from indexer.types import CallSite, Definition

MAX_LINES_OF_PLACE = 4  # more calls in one function say nothing new


def make_call_refs(sites: Sequence[CallSite], role: Role) -> list[EvidenceRef]:
    """Refer to each line that calls once, the code first, and what is certain before what is possible.

    A call that may mean several definitions is one site for each of them.
    """
    refs: dict[tuple[str, int, str], EvidenceRef] = {}
    targets: Counter[tuple[str, int, str, Definition | None]] = Counter()
    for site in sites:
        line = (site.path, site.line, site.name)
        targets[*line, site.callee] += 1
        ref = refs.setdefault(line, make_call_ref(site, role))
        if targets[*line, site.callee] > 1:
            ref["calls"] = max(count_calls([ref]), targets[*line, site.callee])
    return sorted(refs.values(), key=lambda ref: (is_test_or_docs(ref["path"]), ref["ambiguous"]))


def count_calls(refs: Iterable[EvidenceRef]) -> int:
    """Count the calls on some lines."""
    return sum(ref.get("calls", 1) for ref in refs)


def count_by_definition(definitions: Sequence[EvidenceRef], sites: Iterable[CallSite]) -> list[EvidenceRef]:
    """Note with each definition how many of the calls are certainly its own, the most called one first."""
    called = Counter(
        (site.callee.path, site.callee.symbol.qualified_name)
        for site in sites
        if site.callee is not None and not site.ambiguous
    )
    counted: list[EvidenceRef] = [{**ref, "calls": called[ref["path"], ref["symbol"]]} for ref in definitions]
    return sorted(counted, key=lambda ref: -ref["calls"])


def group_by_place(refs: Sequence[EvidenceRef]) -> list[list[EvidenceRef]]:
    """Put the calls side by side that one function makes, or that go to one function, in their order."""
    places: dict[tuple[str, str, bool], list[EvidenceRef]] = {}
    for ref in refs:
        places.setdefault((ref["path"], ref["symbol"], ref["ambiguous"]), []).append(ref)
    return list(places.values())


def take_places(refs: Sequence[EvidenceRef], most: int) -> list[EvidenceRef]:
    """Take the calls of the first places, a few of each."""
    return [ref for place in group_by_place(refs)[:most] for ref in place[:MAX_LINES_OF_PLACE]]
