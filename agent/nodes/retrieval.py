"""Fetches the requested evidence in parallel, with the surroundings of named definitions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from agent.evidence.refs import make_definition_ref, tell_places
from agent.evidence.requests import Retrieved
from agent.guard.evidence_check import find_orders, list_rules
from agent.guard.reading_tools import note_flags
from agent.kinds.fetching import try_fetch
from agent.ports import CodeSearch, Deps, Runtime, SymbolIndex
from agent.repositories.joined_code import JoinedCode
from agent.repositories.labels import label_retrieved
from agent.state import (
    AgentState,
    EvidenceRef,
    Lookup,
    RetrievalMetadata,
    RetrievalRequest,
    make_empty_metadata,
    to_location,
)
from agent.text.escaping import format_code_span
from indexer.errors import IndexerError
from indexer.types import Location

_STAGES: dict[Lookup, str] = {
    "definition": "Looking up {target}",
    "attribute": "Looking up {target}",
    "usages": "Looking up uses of {target}",
    "callers": "Looking up callers of {target}",
    "callees": "Looking up callees of {target}",
    "tests": "Looking for tests of {target}",
    "file": "Reading {target}",
    "lines": "Reading {target}",
    "changes": "Reading the history",
    "people": "Reading the history",
    "commands": "Looking for commands",
    "options": "Looking for options",
    "entry_points": "Looking for registrations",
    "contracts": "Looking for both ends",
    "lists": "Listing",
    "outline": "Listing",
    "dependencies": "Reading {target}",
}

log = logging.getLogger(__name__)

MAX_SIBLINGS = 3


async def retrieval(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Fetch the evidence.

    Reads cleaned_query, router_output, retrieved, expanded, retrieval_metadata, flagged. Writes retrieved, expanded,
    retrieval_metadata, flagged.
    """
    deps = runtime.context
    decision = state.get("router_output")
    requests = decision["requests"] if decision is not None else []
    for request in requests:
        target = format_code_span(request["query"], longest=60)
        stage = _STAGES.get(request["lookup"], "Searching {target}").format(target=target)
        deps.emit("step_start", node="retrieval", stage=stage, lookup=request["lookup"], query=request["query"])
    results = await asyncio.gather(*(_fetch(deps.code, request) for request in requests))
    # Evidence of earlier rounds stays, after the new.
    retrieved = _drop_repeats([*_take_turns(results), *state.get("retrieved", [])])
    metadata = _merge_metadata(requests, results, state.get("retrieval_metadata", make_empty_metadata()))
    around = [ref for result in results for ref in result.around]
    beside = await _expand_evidence(deps.code, retrieved, metadata)
    expanded = _drop_repeats([*around, *beside, *state.get("expanded", [])])
    tell_places(deps, retrieved)
    flagged = note_flags(state.get("flagged", []), _find_names_with_orders(deps, retrieved), deps, source="names")
    return {"retrieved": retrieved, "expanded": expanded, "retrieval_metadata": metadata, "flagged": flagged}


def _find_names_with_orders(deps: Deps, refs: Sequence[EvidenceRef]) -> Mapping[str, Sequence[str]]:
    """Find the files whose name or symbol reads like an order; without a model, it deceives nobody."""
    if deps.models.small is None and deps.models.main is None:
        return {}
    named = {ref["path"]: (ref["path"], ref["symbol"]) for ref in refs}
    return {path: list_rules(find_orders(both)) for path, both in named.items()}


async def _fetch(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Fetch one request, from its repository if it names one; a failure does not affect the others."""
    name = request.get("repository", "")
    if not isinstance(code, JoinedCode) or name not in code.members:
        return await try_fetch(code, request)
    return label_retrieved(await try_fetch(code.members[name], request), name, code.labels.by_name[name])


async def _expand_evidence(
    code: SymbolIndex, retrieved: Sequence[EvidenceRef], metadata: RetrievalMetadata
) -> list[EvidenceRef]:
    """Return the code around the one definition found; nothing if there are several."""
    definitions = [ref for ref in retrieved if ref["role"] == "definition"]
    try:
        return await _find_neighbours(code, definitions[0]) if len(definitions) == 1 else []
    except IndexerError as error:
        log.warning("the surroundings of the evidence could not be read: %s", error)
        metadata["failures"].append(str(error))
        return []


def _merge_metadata(
    requests: Sequence[RetrievalRequest], results: Sequence[Retrieved], before: RetrievalMetadata
) -> RetrievalMetadata:
    totals = dict(before["totals"])
    notes = dict(before.get("by_repository", {}))
    for request, result in zip(requests, results, strict=True):
        _add_counts(totals, result.totals)
        if name := request.get("repository", ""):
            own = notes.get(name, {"totals": {}, "facts": {}})
            notes[name] = {
                "totals": _add_counts(dict(own["totals"]), result.totals),
                "facts": {**own["facts"], **result.facts},
            }
    metadata: RetrievalMetadata = {
        "searched": list(dict.fromkeys([*before["searched"], *(request["query"] for request in requests)])),
        "relaxed": [*before["relaxed"], *(result.relaxed for result in results if result.relaxed)],
        "failures": list(
            dict.fromkeys([*before["failures"], *(failure for result in results for failure in result.failures)])
        ),
        "totals": totals,
        "weak": False,
        "facts": {name: fact for result in results for name, fact in result.facts.items()},
    }
    return {**metadata, "by_repository": notes} if notes else metadata


def _add_counts(totals: dict[str, int], more: Mapping[str, int]) -> dict[str, int]:
    for role, count in more.items():
        totals[role] = totals.get(role, 0) + count
    return totals


def _take_turns(results: Sequence[Retrieved]) -> list[EvidenceRef]:
    """Put looked-up and quoted evidence first, then the hits of all searches in turn, so none hides the rest."""
    ranked = [result for result in results if not result.totals.get("quoted")]
    exact = [ref for result in results for ref in result.refs if result not in ranked or ref["role"] != "hit"]
    turns = zip_longest(*([ref for ref in result.refs if ref["role"] == "hit"] for result in ranked))
    return [*exact, *(ref for turn in turns for ref in turn if ref is not None)]


def _drop_repeats(refs: Iterable[EvidenceRef]) -> list[EvidenceRef]:
    first: dict[tuple[Location, str, str], EvidenceRef] = {}
    for ref in refs:
        # A line may hold several of a list, and a changed file begins with a changed line.
        name = {"entry": ref["symbol"], "change": ref["kind"]}.get(ref["role"], "")
        first.setdefault((to_location(ref), ref["role"], name), ref)
    return list(first.values())


async def _find_neighbours(code: SymbolIndex, ref: EvidenceRef) -> list[EvidenceRef]:
    at = Location(path=ref["path"], start_line=ref["start_line"], end_line=ref["start_line"])
    chain = await code.find_enclosing(at)
    own = next((definition for definition in chain if definition.symbol.qualified_name == ref["symbol"]), None)
    if own is None or not own.symbol.parent:
        return []
    parents = [outer for outer in chain if outer.symbol.qualified_name == own.symbol.parent]
    siblings = [other for other in await code.find_siblings(own) if other.symbol.qualified_name != ref["symbol"]]
    near = sorted(siblings, key=lambda other: abs(other.symbol.start_line - own.symbol.start_line))[:MAX_SIBLINGS]
    return [
        *(make_definition_ref(parent, "parent") for parent in parents),
        *(make_definition_ref(sibling, "sibling") for sibling in near),
    ]
