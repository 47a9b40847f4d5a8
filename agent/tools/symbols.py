"""Tools that know names: where something is defined, who calls it, what it calls."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.evidence.refs import make_call_ref, make_definition_ref
from agent.ports import Deps
from agent.questions.mentions import normalize_name
from agent.state import Role
from agent.tools.tool import Tool, ToolEvidence, ToolReport
from indexer.types import CallSite

MAX_DEFINITIONS = 8
MAX_SITES = 40
_LONGEST_SHOWN = 60


class NameArguments(BaseModel):
    """The name of a definition."""

    name: str = Field(min_length=1, max_length=300, description="A plain or qualified name: send, Session.send.")


class FindSymbol(Tool[NameArguments]):
    """Finds where a name is defined."""

    name = "find_symbol"
    description = "Find where a function, method, class or constant is defined; returns its source."
    arguments = NameArguments
    label = "Looking up"
    argument_shown = "name"
    only_reads = True

    async def run(self, args: NameArguments, deps: Deps) -> ToolEvidence:
        """Show each definition, its first lines where it is long."""
        definitions = await deps.code.definitions(normalize_name(args.name))
        report = ToolReport(deps)
        if not definitions:
            report.say("Nothing of that name is defined here. Search or grep for it.")
        for found in definitions[:MAX_DEFINITIONS]:
            at = found.location
            passage = await deps.code.read(at.path, at.start_line, min(at.end_line, at.start_line + _LONGEST_SHOWN - 1))
            ref = make_definition_ref(found)
            ref["end_line"] = passage.location.end_line
            lines = f"{found.symbol.kind} {found.symbol.qualified_name}, lines {at.start_line} to {at.end_line}"
            report.show(ref, passage.text, about=lines)
        if len(definitions) > MAX_DEFINITIONS:
            report.say(f"{len(definitions) - MAX_DEFINITIONS} more definitions are left out.")
        return report.evidence()


class FunctionArguments(BaseModel):
    """The name of a function."""

    function_name: str = Field(
        min_length=1, max_length=300, description="A plain or qualified name: send, Session.send."
    )


class GetCallers(Tool[FunctionArguments]):
    """Finds who calls a function."""

    name = "get_callers"
    description = "List the places that call a function, method or class."
    arguments = FunctionArguments
    label = "Looking up callers of"
    argument_shown = "function_name"
    only_reads = True

    async def run(self, args: FunctionArguments, deps: Deps) -> ToolEvidence:
        """List the calls with their lines."""
        return await _report_sites(deps, await deps.code.callers(normalize_name(args.function_name)), "caller")


class GetCallees(Tool[FunctionArguments]):
    """Finds what a function calls."""

    name = "get_callees"
    description = "List what a function or method calls."
    arguments = FunctionArguments
    label = "Looking up what is called by"
    argument_shown = "function_name"
    only_reads = True

    async def run(self, args: FunctionArguments, deps: Deps) -> ToolEvidence:
        """List the calls with their lines."""
        return await _report_sites(deps, await deps.code.callees(normalize_name(args.function_name)), "callee")


async def _report_sites(deps: Deps, sites: Sequence[CallSite], role: Role) -> ToolEvidence:
    report = ToolReport(deps)
    if not sites:
        report.say("No such call is known. The name may be unknown too; find_symbol tells.")
    for site in sites[:MAX_SITES]:
        line = (await deps.code.read(site.path, site.line, site.line)).text.strip()
        ref = make_call_ref(site, role)
        maybe = " (one of several of that name)" if site.ambiguous else ""
        report.cite(ref, f"{ref['symbol'] or 'module level'}{maybe}: {line}")
    if len(sites) > MAX_SITES:
        report.say(f"{len(sites) - MAX_SITES} more calls are left out.")
    return report.evidence()
