"""Adds the surroundings of what was found: the definition around a hit, its class, its siblings."""

from __future__ import annotations

from collections.abc import Sequence

from agent.evidence.refs import definition_ref
from agent.ports import CodeSearch
from agent.questions.terms import terms_in
from agent.state import EvidenceRef, where
from indexer.models import Definition, Location

MAX_EXPANDED_HITS = 6
MAX_SIBLINGS = 3


async def expand(code: CodeSearch, refs: Sequence[EvidenceRef], terms: frozenset[str]) -> list[EvidenceRef]:
    """Return the definitions around the best hits and beside the named definitions."""
    expanded: list[EvidenceRef] = []
    for ref in [ref for ref in refs if ref["role"] == "hit"][:MAX_EXPANDED_HITS]:
        expanded += await _subject(code, ref, terms)
    named = [ref for ref in refs if ref["role"] == "definition"]
    if len(named) == 1:
        expanded += await _neighbours(code, named[0])
    return expanded


async def _subject(code: CodeSearch, ref: EvidenceRef, terms: frozenset[str]) -> list[EvidenceRef]:
    """Name the hit after the definition in it that says most of the question, and return that with its class."""
    candidates = await _definitions_at(code, where(ref))
    if not candidates:
        return []
    best = max(candidates, key=lambda definition: _fit(definition, terms))
    ref["symbol"], ref["kind"] = best.symbol.qualified_name, best.symbol.kind
    chain = await code.enclosing(
        Location(path=best.path, start_line=best.symbol.start_line, end_line=best.symbol.start_line)
    )
    parents = [outer for outer in chain if outer.symbol.qualified_name == best.symbol.parent]
    return [definition_ref(best), *(definition_ref(parent, "parent") for parent in parents)]


async def _definitions_at(code: CodeSearch, location: Location) -> list[Definition]:
    """Return the innermost definitions at the first, middle and last line of the hit, without repeats."""
    found: dict[str, Definition] = {}
    middle = (location.start_line + location.end_line) // 2
    for line in dict.fromkeys((location.start_line, middle, location.end_line)):
        around = await code.enclosing(Location(path=location.path, start_line=line, end_line=line))
        for definition in around[-1:]:
            found.setdefault(definition.symbol.qualified_name, definition)
    return list(found.values())


def _fit(definition: Definition, terms: frozenset[str]) -> tuple[int, int]:
    symbol = definition.symbol
    return (
        len(terms_in(f"{symbol.name} {symbol.doc} {symbol.signature}", terms)),
        symbol.end_line - symbol.start_line,
    )


async def _neighbours(code: CodeSearch, ref: EvidenceRef) -> list[EvidenceRef]:
    at = Location(path=ref["path"], start_line=ref["start_line"], end_line=ref["start_line"])
    chain = await code.enclosing(at)
    own = next((definition for definition in chain if definition.symbol.qualified_name == ref["symbol"]), None)
    if own is None:
        return []
    parents = [outer for outer in chain if outer.symbol.qualified_name == own.symbol.parent]
    siblings = [other for other in await code.siblings(own) if other.symbol.qualified_name != ref["symbol"]]
    near = sorted(siblings, key=lambda other: abs(other.symbol.start_line - own.symbol.start_line))[:MAX_SIBLINGS]
    return [
        *(definition_ref(parent, "parent") for parent in parents),
        *(definition_ref(sibling, "sibling") for sibling in near if own.symbol.parent),
    ]
