"""Finds what a type is set up with, and what is of a type: its options, its methods, what implements it in Go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.evidence.definitions import TYPES, list_members
from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.kinds.listing.declared_fields import (
    read_documented_options,
    read_fields,
    read_parameters,
    read_remark_above,
)
from agent.kinds.listing.member_text import Member
from agent.kinds.listing.narrowing import make_member_ref
from agent.ports import CodeLookup
from agent.state import EvidenceRef
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Definition, Location

_MOST_LINES = 600
_LINES_ABOVE = 60
_LEAST = 2
_CONSTRUCTORS = frozenset({"__init__", "__construct", "constructor", "initialize", "init"})
_HIDDEN = compile_pattern(r"(?:^|\s)(?:private|protected|internal|fileprivate)\s")
_INTERFACE_METHOD = compile_pattern(r"(?m)^\s+([A-Z]\w*)\(")


async def find_type(code: CodeLookup, name: str, *, exactly: bool = True) -> Definition | None:
    """Return the type of a name, that of the code before one of a test; in any case where it is not `exactly` so."""
    found = [one for one in await code.definitions(name) if one.symbol.kind in TYPES - {"module"}]
    if exactly:
        found = [one for one in found if one.symbol.name == name.rpartition(".")[2].rpartition(":")[2]]
    return min(found, key=lambda one: (is_test_or_docs(one.path), one.path), default=None)


async def find_type_options(code: CodeLookup, owner: Definition) -> list[EvidenceRef]:
    """Return what a type can be set up with: parameters of its constructor, else its fields, else its methods."""
    lines, language = await _read_lines(code, owner.path, owner.symbol.start_line, owner.symbol.end_line)
    members = await list_members(code, owner.path, owner.symbol.qualified_name)
    chained = [one for one in members if f" {owner.symbol.name} {one.symbol.name}(" in f" {one.symbol.signature}"]
    if len(chained) >= _LEAST:  # a builder, each of whose methods returns it
        return find_public_methods(chained, owner)
    makers = _CONSTRUCTORS | {owner.symbol.name}
    for maker in (one for one in members if one.symbol.name in makers):
        first = maker.symbol.start_line
        own, _ = await _read_lines(code, owner.path, first, maker.symbol.end_line)
        if given := read_parameters(own, language):
            return _refer(owner.path, "parameter", first, own, given)
        above = max(1, first - _LINES_ABOVE)
        comment, _ = await _read_lines(code, owner.path, above, first)
        if given := read_documented_options(comment):
            return _refer(owner.path, "option", above, comment, given)
    if fields := read_fields(lines, language):
        return _refer(owner.path, "field", owner.symbol.start_line, lines, fields)
    return find_public_methods(members, owner)


def find_public_methods(members: Iterable[Definition], owner: Definition) -> list[EvidenceRef]:
    """Refer to the methods of a type that others may call, each once."""
    hidden = _CONSTRUCTORS | {owner.symbol.name}
    named: dict[str, Definition] = {}
    for one in members:
        name = one.symbol.name
        is_open = name not in hidden and not name.startswith("_") and not _HIDDEN.search(one.symbol.signature)
        if is_open and one.symbol.kind in {"method", "function"}:
            named.setdefault(name, one)
    refs = [make_member_ref(one) for one in named.values()]
    for ref in refs:
        ref["symbol"] = ref["symbol"].rpartition(".")[2]
    return refs


async def find_members_of_named(code: CodeLookup, words: Sequence[str]) -> tuple[str, list[EvidenceRef]]:
    """Return the type that is called just by the words, and what it holds: methods of `Middleware` are middlewares."""
    for name in dict.fromkeys(("".join(words), "".join((*words[:-1], f"{words[-1]}s")))):
        owner = await find_type(code, name, exactly=False)
        if owner is None or is_test_or_docs(owner.path) or owner.symbol.kind in {"interface", "trait", "enum"}:
            continue
        lines, language = await _read_lines(code, owner.path, owner.symbol.start_line, owner.symbol.end_line)
        constants = [one for one in read_fields(lines, language) if one.name.isupper()]
        if len(constants) >= _LEAST:
            return owner.symbol.name, _refer(owner.path, "constant", owner.symbol.start_line, lines, constants)
        members = await list_members(code, owner.path, owner.symbol.qualified_name)
        shared = [one for one in members if " static " in f" {one.symbol.signature}"]
        if len(refs := find_public_methods(shared, owner)) >= _LEAST:
            return owner.symbol.name, refs
    return "", []


async def find_implementers(code: CodeLookup, base: str) -> list[Definition]:
    """Return the types of Go that have all methods of an interface, which their own code need not name."""
    owner = await find_type(code, base)
    if owner is None or owner.symbol.kind != "interface" or not owner.path.endswith(".go"):
        return []
    lines, _ = await _read_lines(code, owner.path, owner.symbol.start_line, owner.symbol.end_line)
    kept: set[str] | None = None
    for method in dict.fromkeys(_INTERFACE_METHOD.findall("\n".join(lines))):
        having = {
            one.symbol.parent for one in await code.definitions(method) if one.symbol.parent and one.path[-3:] == ".go"
        }
        kept = having if kept is None else kept & having
    types = [await find_type(code, name) for name in sorted(kept or ())]
    return [one for one in types if one is not None and one.symbol.kind != "interface"]


async def _read_lines(code: CodeLookup, path: str, first: int, last: int) -> tuple[list[str], str]:
    text = (await code.read(path, first, min(last, first + _MOST_LINES))).text
    entry = next((one for one in await code.files() if one.path == path), None)
    return text.split("\n"), entry.language if entry is not None else ""


def _refer(path: str, kind: str, first: int, lines: Sequence[str], members: Iterable[Member]) -> list[EvidenceRef]:
    refs: list[EvidenceRef] = []
    for one in members:
        at = first + one.offset
        ref = make_lines_ref(Location(path=path, start_line=at, end_line=at), "entry")
        ref["symbol"], ref["kind"], ref["signature"] = one.name, kind, one.value
        ref["doc"] = read_remark_above(lines, one.offset) if kind in {"field", "constant"} else ""
        refs.append(ref)
    return refs
