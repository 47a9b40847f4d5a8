"""Definitions of a name, with the bases and subclasses of a class and the overrides of a method."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from agent.evidence.coverage import explain_undefined
from agent.evidence.refs import make_definition_ref
from agent.lookups.lookup import Arguments, CodeLookup, Look, Name, Offset
from agent.lookups.results import FoundSymbol, SymbolResult, cut_line
from agent.questions.mentions import normalize_name
from indexer.types import Definition

MAX_DEFINITIONS = 8  # whose relatives are listed
MAX_RELATED = 20  # subclasses or overrides of one name
_MAX_SIMILAR = 5  # names
_LONGEST_SHOWN = 120  # lines of one definition
_MAX_SHOWN = 240  # lines of all definitions, beyond which each has its first ones
_MIN_SHOWN = 8
_MAX_NAMESAKES = 40  # methods of one name whose classes are compared
_MAX_SIGNATURE = 400
_MAX_BASES = 12
_NAME = re.compile(r"[A-Z]\w{1,80}")
_TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "type"})


class SymbolArguments(Arguments):
    """The name of a definition."""

    name: Name
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    offset: Offset = 0


class FindSymbol(CodeLookup[SymbolArguments, SymbolResult]):
    """Finds the definitions of a name, or else names with that prefix."""

    name = "find_symbol"
    known_as = {"api": "symbols", "operation": "find_symbols"}  # noqa: RUF012
    title = "Find definitions"
    description = (
        "Find where a function, method, class or constant of a name is defined, with its signature and source, the "
        "bases and subclasses of a class, and what overrides a method or is overridden by it."
    )
    arguments = SymbolArguments
    result = SymbolResult
    label = "Looking up"
    argument_shown = "name"
    room = 18_000

    async def find(self, args: SymbolArguments, look: Look) -> SymbolResult:
        """Show each definition whole, up to a length, and say where a longer one continues."""
        wanted = normalize_name(args.name)
        definitions = await look.code.definitions(wanted)
        similar = () if definitions else await look.code.complete_name(wanted, limit=_MAX_SIMILAR)
        if not definitions:
            hint = f" Names that begin so: {', '.join(similar)}." if similar else ""
            look.deny(await explain_undefined(look.code, wanted[:200]), hint)
        page = look.take_page(definitions, args.limit, args.offset)
        left = _MAX_SHOWN
        for found in page:
            left -= await _show_definition(look, found, min(_LONGEST_SHOWN, max(left, _MIN_SHOWN)))
        related = page[:MAX_DEFINITIONS]
        await _report_bases(look, related)
        await _report_subclasses(look, related)
        await _report_overrides(look, related)
        return SymbolResult(**look.head, symbols=tuple(_show_symbol(one, look) for one in page), similar=tuple(similar))


async def _show_definition(look: Look, found: Definition, most: int) -> int:
    """Show the first lines of a definition, and return their number."""
    at, name = found.location, found.symbol.qualified_name
    passage = await look.code.read(at.path, at.start_line, min(at.end_line, at.start_line + most - 1))
    ref = make_definition_ref(found)
    ref["end_line"] = passage.location.end_line
    last = look.show(ref, passage.text, about=f"{found.symbol.kind} {name}, lines {at.start_line} to {at.end_line}")
    if last < at.end_line:
        look.say(f"{name} continues to line {at.end_line}: read_file has lines {last + 1} to {at.end_line}.")
    return last - at.start_line + 1


def _show_symbol(definition: Definition, look: Look) -> FoundSymbol:
    symbol = definition.symbol
    return FoundSymbol(
        name=symbol.qualified_name,
        kind=symbol.kind,
        path=definition.path,
        first_line=symbol.start_line,
        last_line=symbol.end_line,
        signature=cut_line(look.mask(symbol.signature)),
        doc=cut_line(look.mask(symbol.doc)),
        url=look.code.permalink(definition.location),
    )


async def _report_bases(look: Look, definitions: Sequence[Definition]) -> None:
    """List the types named in the first lines of types, such as bases, and in turn theirs."""
    due = [one for one in definitions if one.symbol.kind in _TYPES]
    asked = {name for one in due for name in (one.symbol.name, one.symbol.qualified_name)}
    bases: list[Definition] = []
    while due and len(bases) < _MAX_BASES:
        names = dict.fromkeys(name for one in due for name in _NAME.findall(one.symbol.signature[:_MAX_SIGNATURE]))
        fresh = [name for name in names if name not in asked][:_MAX_BASES]
        asked.update(fresh)
        found = [await look.code.definitions(name) for name in fresh]
        due = [
            one
            for name, each in zip(fresh, found, strict=True)
            for one in each[:MAX_DEFINITIONS]
            if one.symbol.kind in _TYPES and one.symbol.name == name
        ]
        bases += due
    if bases:
        look.say("Its bases, and types in its signature:")
    await _cite_first_lines(look, bases[:_MAX_BASES])


async def _report_subclasses(look: Look, definitions: Sequence[Definition]) -> None:
    """List the subclasses of the types among the definitions, direct ones first."""
    names = dict.fromkeys(one.symbol.qualified_name for one in definitions if one.symbol.kind in _TYPES)
    for name in list(names)[:MAX_DEFINITIONS]:
        heirs = await look.code.subclasses(name)
        if heirs:
            direct = sum(heir.is_direct for heir in heirs)
            look.say(f"Subclasses of {name}: {direct} direct, {len(heirs) - direct} indirect.")
        await _cite_first_lines(look, [heir.definition for heir in heirs])


async def _report_overrides(look: Look, definitions: Sequence[Definition]) -> None:
    """List the methods that override those found, and those that they override."""
    methods = [one for one in definitions if one.symbol.parent]
    for plain in dict.fromkeys(one.symbol.name for one in methods):
        namesakes = [one for one in await look.code.definitions(plain) if one.symbol.parent][:_MAX_NAMESAKES]
        heirs = {
            parent: {(heir.definition.path, heir.definition.symbol.qualified_name) for heir in found}
            for parent in dict.fromkeys(one.symbol.parent for one in namesakes)
            if (found := await look.code.subclasses(parent))
        }
        for method in (one for one in methods if one.symbol.name == plain):
            name = method.symbol.qualified_name
            lower = [one for one in namesakes if _get_owner(one) in heirs.get(method.symbol.parent, ())]
            upper = [one for one in namesakes if _get_owner(method) in heirs.get(one.symbol.parent, ())]
            for heading, others in ((f"{name} is overridden by:", lower), (f"{name} overrides:", upper)):
                if others:
                    look.say(heading)
                await _cite_first_lines(look, others)


def _get_owner(method: Definition) -> tuple[str, str]:
    """Return the class of a method, if it is in the same file."""
    return method.path, method.symbol.parent


async def _cite_first_lines(look: Look, definitions: Sequence[Definition]) -> None:
    for one in definitions[:MAX_RELATED]:
        await look.cite_first_line(one)
    if len(definitions) > MAX_RELATED:
        look.say(f"{len(definitions) - MAX_RELATED} more are left out. Ask for one of those listed.")
