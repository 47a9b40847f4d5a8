"""Makes the typed requests and decisions that the router passes to retrieval, and keeps the results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.ports import CodeSearch
from agent.questions.literals import Literal, parse_literal
from agent.state import EvidenceRef, Lookup, RetrievalRequest, RouterDecision
from indexer.types import SourceType

LONGEST_QUERY = 1000
NOT_INDEXED = "a path that is not indexed"  # the reason of a decision whose `unknown` are the paths
NONE_OF = "There is no"  # the beginning of a reason that names a language
NO_PLACE = "No place where the"  # the beginning of a reason that names a table, a topic, ...


def request_search(
    query: str, *, patterns: Sequence[str] = (), source_types: Sequence[SourceType] = (), reasoning: str
) -> RetrievalRequest:
    """Make the request to rank the code by a text."""
    return {
        "lookup": "search",
        "query": query[:LONGEST_QUERY],
        "source_types": list(source_types),
        "folders": [],
        "patterns": list(patterns),
        "path": "",
        "start_line": 0,
        "end_line": 0,
        "reasoning": reasoning,
    }


def request_lookup(lookup: Lookup, name: str, *, reasoning: str) -> RetrievalRequest:
    """Make the request to look up a name."""
    return {**request_search(name, reasoning=reasoning), "lookup": lookup}


def request_kind(lookup: Lookup, question: str, parts: Mapping[str, str]) -> RetrievalRequest:
    """Make the request for a kind of question."""
    reasoning = f"a question about {lookup.replace('_', ' ')}"
    return {**request_lookup(lookup, question[:LONGEST_QUERY], reasoning=reasoning), "parts": dict(parts)}


def read_literal(request: RetrievalRequest) -> Literal | None:
    """Return the text to find verbatim for a request; None for other requests."""
    if request["lookup"] == "message":
        return Literal(text=request["query"], is_message=True)
    return parse_literal(request["query"]) if request["lookup"] == "search" else None


def request_outline(path: str, *, reasoning: str) -> RetrievalRequest:
    """Make the request for a file's outline."""
    return {**request_lookup("file", path, reasoning=reasoning), "path": path}


def request_lines(path: str, start_line: int, end_line: int, *, reasoning: str, commit: str = "") -> RetrievalRequest:
    """Make the request for lines of a file, possibly at another commit than the turn's."""
    request = request_lookup("lines", path, reasoning=reasoning)
    lines: RetrievalRequest = {**request, "path": path, "start_line": start_line, "end_line": end_line}
    return {**lines, "commit": commit} if commit else lines


def decide_retrieval(
    requests: Sequence[RetrievalRequest], *, fast_path: bool, reasoning: str, unknown: Sequence[str] = ()
) -> RouterDecision:
    """Decide to retrieve."""
    return {
        "route": "retrieve",
        "requests": list(requests),
        "calls": [],
        "clarification": "",
        "fast_path": fast_path,
        "unknown": list(unknown),
        "reasoning": reasoning,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieved:
    """The result of one request: evidence, its surroundings, the total, and notes for the answer.

    `facts` are facts that the evidence does not contain, by name.
    """

    refs: Sequence[EvidenceRef]
    around: Sequence[EvidenceRef] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    relaxed: str = ""
    failures: tuple[str, ...] = ()


Fetch = Callable[[CodeSearch, RetrievalRequest], Awaitable[Retrieved]]
