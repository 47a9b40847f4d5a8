"""The tool that knows names: where something is defined, what inherits from it, and what overrides it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.evidence.coverage import explain_undefined
from agent.evidence.refs import make_definition_ref
from agent.ports import Deps
from agent.questions.mentions import normalize_name
from agent.tools.tool import Tool, ToolEvidence, ToolReport
from indexer.types import Definition

MAX_DEFINITIONS = 8
MAX_RELATED = 20  # subclasses or overrides of one name
_LONGEST_SHOWN = 30  # lines of the first definition
_LONGEST_OTHERS = 8  # lines of each further one
_MOST_NAMESAKES = 40  # methods of one name whose classes are compared
_LONGEST_SIGNATURE = 400
_MOST_BASES = 12
_NAME = re.compile(r"[A-Z]\w{1,80}")
_TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "type"})


class NameArguments(BaseModel):
    """The name of a definition."""

    name: str = Field(min_length=1, max_length=300, description="A plain or qualified name: send, Session.send.")


class FindSymbol(Tool[NameArguments]):
    """Finds where a name is defined."""

    name = "find_symbol"
    description = (
        "Find where a function, method, class or constant is defined; returns its source, the bases and subclasses of "
        "a class, and what overrides a method or is overridden by it."
    )
    arguments = NameArguments
    label = "Looking up"
    argument_shown = "name"
    only_reads = True

    async def run(self, args: NameArguments, deps: Deps) -> ToolEvidence:
        """Show each definition, its first lines where it is long."""
        definitions = await deps.code.definitions(normalize_name(args.name))
        report = ToolReport(deps)
        if not definitions:
            report.say((await explain_undefined(deps.code, args.name)).text)
        for number, found in enumerate(definitions[:MAX_DEFINITIONS]):
            at, longest = found.location, _LONGEST_OTHERS if number else _LONGEST_SHOWN
            passage = await deps.code.read(at.path, at.start_line, min(at.end_line, at.start_line + longest - 1))
            ref = make_definition_ref(found)
            ref["end_line"] = passage.location.end_line
            lines = f"{found.symbol.kind} {found.symbol.qualified_name}, lines {at.start_line} to {at.end_line}"
            report.show(ref, passage.text, about=lines)
        await _report_bases(report, deps, definitions)
        await _report_subclasses(report, deps, definitions)
        await _report_overrides(report, deps, definitions)
        if len(definitions) > MAX_DEFINITIONS:
            more = definitions[MAX_DEFINITIONS:]
            names = ", ".join(f"{one.symbol.qualified_name} ({one.path})" for one in more[:MAX_DEFINITIONS])
            report.say(f"{len(more)} more definitions are left out, such as {names}. Give a qualified name.")
        return report.evidence()


async def _report_bases(report: ToolReport, deps: Deps, definitions: Sequence[Definition]) -> None:
    """List the types that those among the definitions name in their first lines, such as bases, and in turn theirs."""
    due = [one for one in definitions[:MAX_DEFINITIONS] if one.symbol.kind in _TYPES]
    asked = {name for one in due for name in (one.symbol.name, one.symbol.qualified_name)}
    bases: list[Definition] = []
    while due and len(bases) < _MOST_BASES:
        names = dict.fromkeys(name for one in due for name in _NAME.findall(one.symbol.signature[:_LONGEST_SIGNATURE]))
        fresh = [name for name in names if name not in asked][:_MOST_BASES]
        asked.update(fresh)
        found = [await deps.code.definitions(name) for name in fresh]
        due = [
            one
            for name, each in zip(fresh, found, strict=True)
            for one in each[:MAX_DEFINITIONS]
            if one.symbol.kind in _TYPES and one.symbol.name == name
        ]
        bases += due
    if bases:
        report.say("Its bases, and types in its signature:")
    await _cite_first_lines(report, deps, bases[:_MOST_BASES])


async def _report_subclasses(report: ToolReport, deps: Deps, definitions: Sequence[Definition]) -> None:
    """List what inherits from the types among the definitions, the direct ones first."""
    names = dict.fromkeys(one.symbol.qualified_name for one in definitions if one.symbol.kind in _TYPES)
    for name in list(names)[:MAX_DEFINITIONS]:
        heirs = await deps.code.subclasses(name)
        if heirs:
            direct = sum(heir.is_direct for heir in heirs)
            report.say(f"Subclasses of {name}: {direct} direct, {len(heirs) - direct} indirect.")
        await _cite_first_lines(report, deps, [heir.definition for heir in heirs])


async def _report_overrides(report: ToolReport, deps: Deps, definitions: Sequence[Definition]) -> None:
    """List the methods that override those found, and those that they override."""
    methods = [one for one in definitions[:MAX_DEFINITIONS] if one.symbol.parent]
    for plain in dict.fromkeys(one.symbol.name for one in methods):
        namesakes = [one for one in await deps.code.definitions(plain) if one.symbol.parent][:_MOST_NAMESAKES]
        heirs = {
            parent: {(heir.definition.path, heir.definition.symbol.qualified_name) for heir in found}
            for parent in dict.fromkeys(one.symbol.parent for one in namesakes)
            if (found := await deps.code.subclasses(parent))
        }
        for method in (one for one in methods if one.symbol.name == plain):
            name = method.symbol.qualified_name
            lower = [one for one in namesakes if _get_owner(one) in heirs.get(method.symbol.parent, ())]
            upper = [one for one in namesakes if _get_owner(method) in heirs.get(one.symbol.parent, ())]
            for heading, others in ((f"{name} is overridden by:", lower), (f"{name} overrides:", upper)):
                if others:
                    report.say(heading)
                await _cite_first_lines(report, deps, others)


def _get_owner(method: Definition) -> tuple[str, str]:
    """The class of a method, as far as it stands in the same file."""
    return method.path, method.symbol.parent


async def _cite_first_lines(report: ToolReport, deps: Deps, definitions: Sequence[Definition]) -> None:
    for one in definitions[:MAX_RELATED]:
        start = one.symbol.start_line
        ref = make_definition_ref(one)
        ref["end_line"] = start
        line = (await deps.code.read(one.path, start, start)).text.strip()
        report.cite(ref, f"{one.symbol.qualified_name}: {line}")
    if len(definitions) > MAX_RELATED:
        report.say(f"{len(definitions) - MAX_RELATED} more are left out. Ask for one of those listed.")
