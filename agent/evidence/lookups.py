"""Answers requests that name their target, without ranking: definitions, calls, tests, files, lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from agent.evidence.definitions import find_attributes, find_hit_definition, find_similar_names, list_outline
from agent.evidence.named_uses import NamedDefinition, find_named_uses
from agent.evidence.path_lookup import FilePathLookup
from agent.evidence.refs import (
    count_by_definition,
    count_calls,
    group_by_place,
    is_test_or_docs,
    make_call_ref,
    make_call_refs,
    make_definition_ref,
    make_hit_ref,
    make_lines_ref,
    sort_code_first,
    sort_definitions,
    take_places,
)
from agent.evidence.requests import Fetch, Retrieved, read_literal
from agent.evidence.search import find_exact_text, find_message, search_parts, search_relaxed
from agent.ports import CodeSearch, SymbolIndex
from agent.questions.literals import Literal, find_literals, parse_literal
from agent.questions.mentions import find_mentions
from agent.questions.terms import find_content_terms
from agent.state import EvidenceRef, Lookup, RetrievalRequest, Role, to_location
from indexer.errors import IndexerError
from indexer.types import CallSite, Hit, Location, Match, RegistrationKind

MAX_DEFINITIONS = 8
MAX_SITES = 24
MAX_NAMED_HITS = 8
MAX_MENTIONS = 500  # lines
PAST = "past"  # the kind of evidence that is lines at another commit
NOT_AT_COMMIT = "not at the commit"
_READ: tuple[RegistrationKind, ...] = ("environment",)
_CONTEXT_LINES = 5
_FILE_HEAD = 40
MAX_PASSAGES = 30  # of one search; as many as a model reads
_LITERAL_HITS = 10
_LITERAL_DEPTH = 25  # hits read when the words of a text are to be found as they are
_REMARKS = ("//", "#", "/*", "*", "--", ";", "<!--")  # mentions outside the code come after it
_IMPORTING = re.compile(
    r"^\s*(?:import|from|#\s*include|(?:pub\s+)?use|using|mod|export|require|source)\b|\b(?:require|import)\("
)


async def search(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Rank the code for the query; search for quoted text verbatim."""
    literal = parse_literal(request["query"])
    if literal:
        result = await search_relaxed(code, request, limit=_LITERAL_HITS)
        hits, matches = await find_exact_text(code, result.hits, literal)
    else:
        result = await search_parts(code, request, limit=MAX_PASSAGES)
        hits, matches = list(result.hits), 0
    refs, around = await _describe_hits(code, request["query"], hits, literal)
    near = await _find_similar(code, request["query"], hits) if literal and not matches else []
    totals = {"said": matches, "quoted": 1} if literal else {}
    return Retrieved(
        refs=[*near, *refs], around=around, totals=totals, relaxed=result.relaxed, failures=result.failures
    )


async def _search_message(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    result = await search_relaxed(code, request, limit=_LITERAL_DEPTH)
    spelt = await find_message(code, result.hits, request["query"])
    refs, around = await _describe_hits(code, request["query"], spelt.hits[:_LITERAL_HITS], read_literal(request))
    totals = {"said": spelt.said, "quoted": 1, "filled": int(0 < spelt.share < 1)}
    return Retrieved(refs=refs, around=around, totals=totals, relaxed=result.relaxed, failures=result.failures)


async def _describe_hits(
    code: SymbolIndex, query: str, hits: Sequence[Hit], literal: Literal | None
) -> tuple[list[EvidenceRef], list[EvidenceRef]]:
    """Refer to the best hits by their subjects and definitions."""
    terms = find_content_terms(query)
    literals = (literal,) if literal else find_literals(query)
    refs: list[EvidenceRef] = []
    around: list[EvidenceRef] = []
    for hit in hits:
        ref = make_hit_ref(hit)
        if len(refs) < MAX_NAMED_HITS:
            about = await find_hit_definition(code, hit, terms, literals)
            around += [
                make_definition_ref(one, "parent" if number else "definition") for number, one in enumerate(about)
            ]
            if about:
                ref["symbol"], ref["kind"] = about[0].symbol.qualified_name, about[0].symbol.kind
        refs.append(ref)
    return refs, around


async def _find_similar(code: CodeSearch, name: str, hits: Sequence[Hit]) -> list[EvidenceRef]:
    """Return the likely meanings of a misspelt name; none for a defined name."""
    if not find_mentions(f"`{name}`").names or await code.definitions(name):
        return []
    seen = [symbol.qualified_name for hit in hits for symbol in hit.symbols]
    return [make_definition_ref(one) for one in await find_similar_names(code, name, seen)]


async def _find_definition(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    found = await code.definitions(request["query"])
    if request["lookup"] == "usages" and request["query"].isupper():  # an environment variable is no `lower_case` name
        found = [one for one in found if one.symbol.name == request["query"]]
    definitions = sort_definitions(found, request["patterns"])
    refs = [make_definition_ref(definition) for definition in definitions[:MAX_DEFINITIONS]]
    asides = sum(is_test_or_docs(definition.path) for definition in definitions)
    return Retrieved(refs=refs, totals={"definition": len(definitions), "aside": asides})


async def _find_callers(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    calls = await _add_definition(code, request, await code.callers(request["query"]), "caller")
    registered = await _keep_inside(code, request, await _find_registrations(code, request["query"]))
    # A name may be passed on besides its calls, and an uncalled function may be called by other means.
    mentions = _keep_one_per_line([*registered, *await _find_mentions(code, request, "mention")])
    if calls.totals["caller"]:
        taken = {(ref["path"], ref["start_line"]) for ref in calls.refs}
        mentions = [
            ref
            for ref in mentions
            if ref["kind"] and (ref["path"], ref["start_line"]) not in taken and not is_test_or_docs(ref["path"])
        ]
    refs = [*calls.refs, *_keep_one_per_symbol(mentions[:MAX_SITES])]
    uses = sum(bool(ref["score"]) for ref in mentions)
    return Retrieved(refs=refs, totals={**calls.totals, "mention": len(mentions), "uses": uses})


async def _find_callees(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    return await _add_definition(code, request, await code.callees(request["query"]), "callee")


async def _find_usages(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    if request["path"]:
        return await _find_importers(code, request)
    calls = await _add_definition(code, request, await code.callers(request["query"]), "caller")
    taken = {(ref["path"], ref["start_line"]) for ref in calls.refs}
    registered = await _keep_inside(code, request, await _find_registrations(code, request["query"]))
    found = [*registered, *await _find_mentions(code, request, "mention")]
    mentions = [ref for ref in _keep_one_per_line(found) if (ref["path"], ref["start_line"]) not in taken]
    uses = [ref for ref in mentions if ref["score"]]
    mentions = uses if uses and not calls.totals["caller"] else mentions
    totals = {**calls.totals, "mention": len(mentions), "uses": len(uses)}
    return Retrieved(refs=[*calls.refs, *_keep_one_per_symbol(sort_code_first(mentions)[:MAX_SITES])], totals=totals)


async def _find_importers(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Find the lines that import a file, by its name in imports."""
    stem = PurePosixPath(request["path"]).stem
    if stem in {"__init__", "index", "mod", "lib", "main"}:
        stem = PurePosixPath(request["path"]).parent.name or stem
    lines = [one for one in await _grep_name(code, stem) if _IMPORTING.search(one.text)]
    refs = [make_lines_ref(one.location, "mention") for one in lines if one.location.path != request["path"]]
    return Retrieved(refs=sort_code_first(refs)[:MAX_SITES], totals={"mention": len(refs)})


async def _find_registrations(code: CodeSearch, name: str) -> list[EvidenceRef]:
    """Find the lines that register the name: as the handler of a route, as a command, a task; or that read it."""
    named = await find_named_uses(code, await NamedDefinition.find(code, name))
    sites = [one for one in await code.registrations(_READ) if one.registration.name == name]
    return [*named, *(make_lines_ref(one.location, "mention") for one in sites)]


async def _find_tests(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    definitions = (await _find_definition(code, request)).refs[:3]
    test_files = {entry.path for entry in await code.files() if entry.source_type == "test"}
    sites = [site for site in await code.callers(request["query"]) if site.path in test_files]
    refs = [make_call_ref(site, "caller") for site in sites]
    if not refs:
        refs = [ref for ref in await _find_mentions(code, request, "test") if ref["path"] in test_files]
    for ref in refs:
        ref["role"] = "test"
    distinct = sorted(_keep_one_per_symbol(refs), key=lambda ref: not ref["symbol"])  # imports last
    return Retrieved(refs=[*definitions, *distinct[:MAX_SITES]], totals={"test": len(distinct)})


async def _outline_file(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    path = request["path"]
    head = await code.read(path, 1, _FILE_HEAD)
    refs = [make_definition_ref(one) for one in await list_outline(code, path)]
    return Retrieved(
        refs=[make_lines_ref(head.location, "file", language=head.language), *refs], totals={"definition": len(refs)}
    )


async def _read_lines(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Read lines at the requested commit; if it has none that may be shown, read the turn's, with a note."""
    commit = request.get("commit", "")
    if not commit or code.commit.sha.startswith(commit):
        return await _read_lines_here(code, request)
    start, end = _add_context(request)
    try:
        passage = await code.past.read(Location(path=request["path"], start_line=start, end_line=end, commit=commit))
    except IndexerError as error:
        note = str(error)
    else:
        ref = make_lines_ref(passage.location, "change", language=passage.language, kind=PAST, doc=passage.text)
        return Retrieved(refs=[ref])
    alike = FilePathLookup(await code.files(), [request["path"]]).find_alike(request["path"])
    if len(alike) != 1:
        return Retrieved(refs=(), facts={NOT_AT_COMMIT: f"{note} There is no such file now either."})
    entry, branch = alike[0], code.commit.branch
    last = max(entry.lines, 1)
    start, end = min(request["start_line"], last), min(request["end_line"], last)
    newest = await _read_lines_here(code, {**request, "path": entry.path, "start_line": start, "end_line": end})
    shown = f"These are its lines on {branch}." if branch else "These are its lines now."
    return replace(newest, facts={NOT_AT_COMMIT: f"{note} {shown}"})


def _add_context(request: RetrievalRequest) -> tuple[int, int]:
    """Return the lines to read: a range as requested, a single line with its surroundings."""
    context = _CONTEXT_LINES if request["start_line"] == request["end_line"] else 0
    return max(1, request["start_line"] - context), request["end_line"] + context


async def _read_lines_here(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    passage = await code.read(request["path"], *_add_context(request))
    asked = Location(
        path=request["path"],
        start_line=min(request["start_line"], passage.location.end_line),
        end_line=min(request["end_line"], passage.location.end_line),
    )
    around = await code.find_enclosing(asked)
    refs = [make_lines_ref(passage.location, "lines", language=passage.language)]
    return Retrieved(refs=refs + [make_definition_ref(definition, "parent") for definition in around[-1:]])


async def _add_definition(
    code: CodeSearch, request: RetrievalRequest, sites: Sequence[CallSite], role: Role
) -> Retrieved:
    definitions = await _find_definition(code, request)
    if request["folders"] or request["source_types"]:
        inside = await _list_paths(code, request)
        sites = [site for site in sites if site.path in inside]
        near = [ref for ref in definitions.refs if ref["path"] in inside]
        definitions = replace(definitions, refs=near or definitions.refs)
    own = {(ref["path"], ref["symbol"]) for ref in definitions.refs} if request["patterns"] else set()
    if role == "callee" and own:
        makers = [(site, site.caller) for site in sites if site.caller is not None]
        sites = [site for site, maker in makers if (maker.path, maker.symbol.qualified_name) in own]
    calls = make_call_refs(sites, role)
    totals = {**definitions.totals, role: len(group_by_place(calls)), f"{role} sites": count_calls(calls)}
    if role == "callee":
        known, foreign = [[ref for ref in calls if bool(ref["kind"]) is is_known] for is_known in (True, False)]
        totals["callee inside"] = count_calls(known)
        shown = [*take_places(known, MAX_SITES), *take_places(foreign, MAX_SITES)]
        return Retrieved(refs=[*definitions.refs[:3], *shown], totals=totals)
    called = count_by_definition(definitions.refs, sites)
    return Retrieved(refs=[*called[:3], *take_places(calls, MAX_SITES)], totals=totals)


async def _find_mentions(code: CodeSearch, request: RetrievalRequest, role: Role) -> list[EvidenceRef]:
    """Find the lines that contain the name and do not define it: code first, then other files, then tests.

    Mere mentions, in a comment or a page of the documentation, have no score.
    """
    name = request["query"].rpartition(".")[2]
    found = await _grep_name(code, name)
    remarks = {(one.location.path, one.location.start_line) for one in found if one.text.lstrip().startswith(_REMARKS)}
    target = await NamedDefinition.find(code, name)
    refs = [
        make_lines_ref(one.location, role, kind=target.describe_use(one.location.path, one.text))
        for one in found
        if not target.is_defined_at(one.location.path, one.location.start_line, one.text)
    ]
    refs = await _keep_inside(code, request, refs)
    pages = {entry.path for entry in await code.files() if entry.source_type == "doc"}
    for ref in refs:
        ref["score"] = float(ref["path"] not in pages and (ref["path"], ref["start_line"]) not in remarks)
    programs = {entry.path for entry in await code.files() if entry.source_type == "code" and entry.language}
    refs.sort(key=lambda ref: (ref["path"] not in programs, not ref["score"]))
    refs = sort_code_first(refs)
    for ref in refs[:MAX_SITES]:
        around = await code.find_enclosing(to_location(ref))
        ref["symbol"] = around[-1].symbol.qualified_name if around else ""
    return refs


async def _keep_inside(code: CodeSearch, request: RetrievalRequest, refs: list[EvidenceRef]) -> list[EvidenceRef]:
    """Keep results in the files that a request is limited to."""
    if not (request["folders"] or request["source_types"]):
        return refs
    inside = await _list_paths(code, request)
    return [ref for ref in refs if ref["path"] in inside]


async def _list_paths(code: CodeSearch, request: RetrievalRequest) -> frozenset[str]:
    """Return the files that a request is limited to."""
    folders = [f"{folder.strip('/')}/" for folder in request["folders"]] or [""]
    return frozenset(
        entry.path
        for entry in await code.files()
        if any(f"{entry.path}/".startswith(folder) for folder in folders)
        and (not request["source_types"] or entry.source_type in request["source_types"])
    )


async def _grep_name(code: CodeSearch, name: str) -> list[Match]:
    """Find every line that has the name as a whole word."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    found = await code.grep(re.escape(name), limit=MAX_MENTIONS)
    return [one for one in found.lines if word.search(one.text)]


def _keep_one_per_symbol(refs: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    first: dict[tuple[str, str], EvidenceRef] = {}
    for ref in refs:
        first.setdefault((ref["path"], ref["symbol"] or str(ref["start_line"])), ref)
    return list(first.values())


def _keep_one_per_line(refs: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    first: dict[tuple[str, int], EvidenceRef] = {}
    for ref in refs:
        first.setdefault((ref["path"], ref["start_line"]), ref)
    return list(first.values())


LOOKUPS: Mapping[Lookup, Fetch] = {
    "search": search,
    "message": _search_message,
    "definition": _find_definition,
    "attribute": find_attributes,
    "usages": _find_usages,
    "callers": _find_callers,
    "callees": _find_callees,
    "tests": _find_tests,
    "file": _outline_file,
    "lines": _read_lines,
}
