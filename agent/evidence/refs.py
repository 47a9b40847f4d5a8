"""Makes references to evidence out of what the index returns."""

from __future__ import annotations

from agent.state import EvidenceRef, Role
from indexer.models import CallSite, Definition, Hit, Location, Symbol


def make_lines_ref(location: Location, role: Role, *, language: str = "", score: float = 1.0) -> EvidenceRef:
    """Refer to lines of a file of which nothing else is known."""
    return {
        "path": location.path,
        "start_line": location.start_line,
        "end_line": location.end_line,
        "role": role,
        "score": score,
        "language": language,
        "source_type": "",
        "symbol": "",
        "kind": "",
        "signature": "",
        "doc": "",
        "ambiguous": False,
    }


def make_definition_ref(definition: Definition, role: Role = "definition", *, score: float = 1.0) -> EvidenceRef:
    """Refer to the whole of a definition."""
    return _add_symbol(make_lines_ref(definition.location, role, score=score), definition.symbol)


def make_hit_ref(hit: Hit) -> EvidenceRef:
    """Refer to a search hit; its symbol is the innermost definition around its first line."""
    ref = make_lines_ref(hit.location, "hit", language=hit.language, score=hit.score)
    ref["source_type"] = hit.source_type
    ref["symbol"] = hit.scope
    return ref


def make_call_ref(site: CallSite, role: Role) -> EvidenceRef:
    """Refer to the line of a call; the symbol is whoever is at its other end."""
    other = site.caller if role == "caller" else site.callee
    ref = make_lines_ref(Location(path=site.path, start_line=site.line, end_line=site.line), role)
    ref["ambiguous"] = site.ambiguous
    if other is not None:
        ref = _add_symbol(ref, other.symbol)
    elif role == "callee":
        ref["symbol"] = site.name
    return ref


def _add_symbol(ref: EvidenceRef, symbol: Symbol) -> EvidenceRef:
    ref["symbol"] = symbol.qualified_name
    ref["kind"] = symbol.kind
    ref["signature"] = symbol.signature
    ref["doc"] = symbol.doc
    return ref
