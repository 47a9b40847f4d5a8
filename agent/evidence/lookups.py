"""Answers a request that names its target without ranking anything: definitions, calls, tests, files, lines."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.evidence.refs import call_ref, definition_ref, hit_ref, lines_ref, symbol_ref
from agent.evidence.search import search
from agent.ports import CodeSearch
from agent.questions.terms import content_terms
from agent.state import EvidenceRef, Lookup, RetrievalRequest, Role, where
from indexer.models import CallSite, Location

MAX_DEFINITIONS = 8
MAX_SITES = 24
_CONTEXT_LINES = 5
_FILE_HEAD = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What one request brought: evidence, the number there was in all, and notes for the answer."""

    refs: Sequence[EvidenceRef]
    totals: Mapping[str, int] = field(default_factory=dict)
    relaxed: str = ""
    failures: tuple[str, ...] = ()


async def fetch(code: CodeSearch, request: RetrievalRequest) -> Found:
    """Carry out one retrieval request."""
    return await _LOOKUPS[request["lookup"]](code, request)


async def _search(code: CodeSearch, request: RetrievalRequest) -> Found:
    result = await search(code, request)
    return Found(refs=[hit_ref(hit) for hit in result.hits], relaxed=result.relaxed, failures=result.failures)


async def _definition(code: CodeSearch, request: RetrievalRequest) -> Found:
    definitions = await code.definitions(request["query"])
    refs = [definition_ref(definition) for definition in definitions[:MAX_DEFINITIONS]]
    return Found(refs=refs, totals={"definition": len(definitions)})


async def _callers(code: CodeSearch, request: RetrievalRequest) -> Found:
    return await _with_definition(code, request, await code.callers(request["query"]), "caller")


async def _callees(code: CodeSearch, request: RetrievalRequest) -> Found:
    return await _with_definition(code, request, await code.callees(request["query"]), "callee")


async def _usages(code: CodeSearch, request: RetrievalRequest) -> Found:
    calls = await _callers(code, request)
    taken = {(ref["path"], ref["start_line"]) for ref in calls.refs}
    own = [ref for ref in calls.refs if ref["role"] == "definition"]
    mentions = [
        ref
        for ref in await _mentions(code, request, "mention")
        if (ref["path"], ref["start_line"]) not in taken and not any(_starts_at(ref, other) for other in own)
    ]
    totals = {**calls.totals, "mention": len(mentions)}
    return Found(refs=[*calls.refs, *mentions[:MAX_SITES]], totals=totals)


async def _tests(code: CodeSearch, request: RetrievalRequest) -> Found:
    definitions = (await _definition(code, request)).refs[:3]
    test_files = {entry.path for entry in await code.files() if entry.source_type == "test"}
    sites = [site for site in await code.callers(request["query"]) if site.path in test_files]
    refs = [call_ref(site, "caller") for site in sites]
    if not refs:
        said = await _mentions(code, {**request, "source_types": ["test"]}, "test")
        refs = [ref for ref in said if ref["path"] in test_files]  # the search may have relaxed its filter
    for ref in refs:
        ref["role"] = "test"
    return Found(refs=[*definitions, *_one_per_symbol(refs)[:MAX_SITES]], totals={"test": len(refs)})


async def _file(code: CodeSearch, request: RetrievalRequest) -> Found:
    path = request["path"]
    head = await code.read(path, 1, _FILE_HEAD)
    within: RetrievalRequest = {
        **request,
        "query": " ".join(sorted(content_terms(path))) or path,
        "patterns": ["/" + _escaped(path)],
    }
    hits = (await search(code, within, limit=60)).hits
    symbols = {symbol.qualified_name: symbol for hit in hits if hit.location.path == path for symbol in hit.symbols}
    ordered = sorted(symbols.values(), key=lambda symbol: symbol.start_line)
    refs = [symbol_ref(path, symbol, "definition") for symbol in ordered]
    return Found(
        refs=[lines_ref(head.location, "file", language=head.language), *refs], totals={"definition": len(refs)}
    )


async def _lines(code: CodeSearch, request: RetrievalRequest) -> Found:
    start = max(1, request["start_line"] - _CONTEXT_LINES)
    passage = await code.read(request["path"], start, request["end_line"] + _CONTEXT_LINES)
    asked = Location(
        path=request["path"],
        start_line=min(request["start_line"], passage.location.end_line),
        end_line=min(request["end_line"], passage.location.end_line),
    )
    around = await code.enclosing(asked)
    refs = [lines_ref(passage.location, "lines", language=passage.language)]
    return Found(refs=refs + [definition_ref(definition, "parent") for definition in around[-1:]])


async def _with_definition(code: CodeSearch, request: RetrievalRequest, sites: Sequence[CallSite], role: Role) -> Found:
    definitions = await _definition(code, request)
    refs = [call_ref(site, role) for site in sites]
    distinct = sorted(refs if role == "caller" else _one_per_symbol(refs), key=lambda ref: ref["ambiguous"])
    return Found(
        refs=[*definitions.refs[:3], *distinct[:MAX_SITES]], totals={**definitions.totals, role: len(distinct)}
    )


async def _mentions(code: CodeSearch, request: RetrievalRequest, role: Role) -> list[EvidenceRef]:
    """Find the lines that say the name, in the files that the ranking puts first."""
    name = request["query"].rpartition(".")[2]
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    refs: list[EvidenceRef] = []
    for hit in (await search(code, {**request, "query": name}, limit=20)).hits:
        for offset, line in enumerate(hit.text.split("\n")):
            if word.search(line):
                at = hit.location.start_line + offset
                ref = lines_ref(Location(path=hit.location.path, start_line=at, end_line=at), role)
                refs.append(ref)
    return [await _within_definition(code, ref) for ref in refs[:MAX_SITES]]


async def _within_definition(code: CodeSearch, ref: EvidenceRef) -> EvidenceRef:
    around = await code.enclosing(where(ref))
    ref["symbol"] = around[-1].symbol.qualified_name if around else ""
    return ref


def _one_per_symbol(refs: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    first: dict[tuple[str, str], EvidenceRef] = {}
    for ref in refs:
        first.setdefault((ref["path"] if ref["role"] != "callee" else "", ref["symbol"] or ref["path"]), ref)
    return list(first.values())


def _starts_at(mention: EvidenceRef, definition: EvidenceRef) -> bool:
    """Whether the mention is the line that defines the name."""
    return mention["path"] == definition["path"] and mention["start_line"] == definition["start_line"]


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[\]!#\\])", r"\\\1", path)


_LOOKUPS: Mapping[Lookup, Callable[[CodeSearch, RetrievalRequest], Awaitable[Found]]] = {
    "search": _search,
    "definition": _definition,
    "usages": _usages,
    "callers": _callers,
    "callees": _callees,
    "tests": _tests,
    "file": _file,
    "lines": _lines,
}
