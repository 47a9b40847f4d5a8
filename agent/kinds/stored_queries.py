"""Lookups that an answer rests on as a whole: a "no" and a complete list, repeated at later commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent.evidence.refs import is_test_or_docs
from agent.kinds.fetching import fetch_evidence
from agent.ports import CodeSearch
from agent.state import EvidenceRef, Lookup, RetrievalRequest

MAX_ITEMS = 200  # that are kept of one list; the totals count all
# A list of these is complete: it says all that there is.
_LISTS: frozenset[Lookup] = frozenset({"usages", "callers", "callees", "tests", "options", "entry_points", "lists"})
_BY_NAME: frozenset[Lookup] = frozenset({"usages", "callers", "callees", "tests"})  # their entries say it all
_EXPORTS = "__all__"  # names what a module has, and uses nothing of it
_NAMES: frozenset[Lookup] = frozenset({"definition", "attribute"})  # of which only a "no" is about the whole code
_OWN = frozenset({"definition", "parent"})  # roles of what the list is about, which citations follow


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredQuery:
    """A lookup and its results without line numbers: places by name, and counts by kind."""

    request: RetrievalRequest
    items: tuple[str, ...]
    totals: Mapping[str, int]

    @property
    def name(self) -> str:
        """The name in the lookup; empty if it covers a whole kind."""
        parts = self.request.get("parts")
        return self.request["query"].rpartition(".")[2] if parts is None else parts.get("name", "")

    def covers(self, words: Collection[str]) -> bool:
        """Whether a claim with these words is about the lookup's list: then its lines may change."""
        return self.request["lookup"] in _BY_NAME and self.name.lower() in words

    def compare(self, later: StoredQuery) -> tuple[Sequence[str], Sequence[str]] | None:
        """Compare a later result with this one: new and missing entries; None if they are the same.

        The same name in another file is the same. Tests and pages count only in lists of tests.
        """
        new, gone = (self._list_counted(one, other) for one, other in ((later, self), (self, later)))
        left = Counter(_read_symbol(item) for item in gone) & Counter(_read_symbol(item) for item in new)
        new, gone = ([*_leave_out(items, left)] for items in (new, gone))
        is_cut = max(len(self.items), len(later.items)) >= MAX_ITEMS
        return (new, gone) if new or gone or (is_cut and self.totals != later.totals) else None

    def _list_counted(self, one: StoredQuery, other: StoredQuery) -> Sequence[str]:
        """List the entries of one result that the other lacks."""
        counts_all = self.request["lookup"] == "tests"
        items = (Counter(one.items) - Counter(other.items)).elements()
        return [
            item
            for item in items
            if (counts_all or not is_test_or_docs(item.partition(" ")[0])) and _read_symbol(item) != _EXPORTS
        ]

    def to_fields(self) -> Mapping[str, Any]:
        """Return the query as JSON fields."""
        return {"request": self.request, "items": list(self.items), "totals": dict(self.totals)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> StoredQuery:
        """Read the output of `to_fields`."""
        request = cast("RetrievalRequest", fields["request"])
        return cls(request=request, items=tuple(fields["items"]), totals=fields["totals"])


async def store_queries(code: CodeSearch, requests: Sequence[RetrievalRequest]) -> Sequence[StoredQuery]:
    """Repeat the lookups that an answer rests on as a whole, to remember their results."""
    exact = [request for request in requests if request["lookup"] in _LISTS | _NAMES and "commit" not in request]
    found = [await _look_up(code, request) for request in exact]
    return [query for query in found if query.request["lookup"] in _LISTS or not query.items]


async def run_again(code: CodeSearch, query: StoredQuery) -> StoredQuery:
    """Repeat a lookup at the commit of the code."""
    return await _look_up(code, query.request)


async def _look_up(code: CodeSearch, request: RetrievalRequest) -> StoredQuery:
    found = await fetch_evidence(code, request)
    is_name = request["lookup"] in _NAMES
    items = sorted(_name_item(ref) for ref in found.refs if is_name or ref["role"] not in _OWN)
    totals = {kind: count for kind, count in found.totals.items() if count}
    return StoredQuery(request=request, items=tuple(items[:MAX_ITEMS]), totals=totals)


def _read_symbol(item: str) -> str:
    return item.partition(" ")[2]


def _leave_out(items: Sequence[str], symbols: Mapping[str, int]) -> Iterator[str]:
    """Yield items, skipping some of each symbol."""
    left = Counter({symbol: count for symbol, count in symbols.items() if symbol})
    for item in items:
        if left[_read_symbol(item)] > 0:
            left[_read_symbol(item)] -= 1
        else:
            yield item


def _name_item(ref: EvidenceRef) -> str:
    return f"{ref['path']} {ref['symbol']}".strip()
