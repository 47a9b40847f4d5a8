"""Adds the surroundings of a definition that was named: its class, and its nearest siblings."""

from __future__ import annotations

from collections.abc import Sequence

from agent.evidence.refs import make_definition_ref
from agent.ports import CodeSearch
from agent.state import EvidenceRef
from indexer.models import Location

MAX_SIBLINGS = 3


async def add_surroundings(code: CodeSearch, refs: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Return what stands beside and around the one definition that was found; nothing where there are several."""
    named = [ref for ref in refs if ref["role"] == "definition"]
    return await _neighbours(code, named[0]) if len(named) == 1 else []


async def _neighbours(code: CodeSearch, ref: EvidenceRef) -> list[EvidenceRef]:
    at = Location(path=ref["path"], start_line=ref["start_line"], end_line=ref["start_line"])
    chain = await code.enclosing(at)
    own = next((definition for definition in chain if definition.symbol.qualified_name == ref["symbol"]), None)
    if own is None or not own.symbol.parent:
        return []
    parents = [outer for outer in chain if outer.symbol.qualified_name == own.symbol.parent]
    siblings = [other for other in await code.siblings(own) if other.symbol.qualified_name != ref["symbol"]]
    near = sorted(siblings, key=lambda other: abs(other.symbol.start_line - own.symbol.start_line))[:MAX_SIBLINGS]
    return [
        *(make_definition_ref(parent, "parent") for parent in parents),
        *(make_definition_ref(sibling, "sibling") for sibling in near),
    ]
