"""Tools that follow calls: who calls a function, and what it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from agent.evidence.coverage import explain_no_calls
from agent.evidence.refs import count_calls, make_call_refs, make_definition_ref
from agent.ports import Deps
from agent.questions.mentions import normalize_name
from agent.repositories.joined_code import place_path
from agent.state import Role
from agent.tools.tool import Tool, ToolEvidence, ToolReport
from indexer.types import CallSite, Definition

MAX_SITES = 20
_MOST_DEFINED = 8  # callees whose definition is named
_MOST_NAMED = 4  # definitions that a possible call may mean

DefinitionKey = tuple[str, str]


class FunctionArguments(BaseModel):
    """The name of a function."""

    function_name: str = Field(
        min_length=1, max_length=300, description="A plain or qualified name: send, Session.send."
    )
    path: str = Field(default="", max_length=1000, description="Only calls in this file or folder; empty for all.")


class CallLookup(Tool[FunctionArguments]):
    """What tools that follow the calls of a function have in common; a subclass knows which way."""

    arguments = FunctionArguments
    argument_shown = "function_name"
    only_reads = True

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the function and the path."""
        path = str(args.get("path") or "")[:100]
        return f"{args.get('function_name', '')}{f' in {path}' if path else ''}"


class GetCallers(CallLookup):
    """Finds who calls a function."""

    name = "get_callers"
    description = "List the places that call a function, method or class, with possible calls listed separately."
    label = "Looking up callers of"

    async def run(self, args: FunctionArguments, deps: Deps) -> ToolEvidence:
        """List the calls with their lines, by the definition that they mean."""
        name = normalize_name(args.function_name)
        sites = _filter_by_path(await deps.code.callers(name, unresolved=True), place_path(deps.code, args.path))
        listing = _CallListing(deps, "caller", args.path)
        certain = [site for site in sites if not site.ambiguous]
        for key, own in _group_by_definition(await deps.code.definitions(name), certain, "callee").items():
            await listing.add(f"Calls of {key}:", own)
        possible = [site for site in sites if site.ambiguous]
        await listing.add(
            "Possibly calls of it, where the syntax does not tell which definition or what class is meant:", possible
        )
        no = None if sites else await explain_no_calls(deps.code, name, f"No call of {name} was found")
        return listing.finish(no.text if no is not None else "")


class GetCallees(CallLookup):
    """Finds what a function calls."""

    name = "get_callees"
    description = "List what a function or method calls, and where that is defined."
    label = "Looking up what is called by"

    async def run(self, args: FunctionArguments, deps: Deps) -> ToolEvidence:
        """List the calls with their lines, by the definition that they stand in."""
        name = normalize_name(args.function_name)
        sites = _filter_by_path(await deps.code.callees(name), place_path(deps.code, args.path))
        listing = _CallListing(deps, "callee", args.path)
        for key, own in _group_by_definition(await deps.code.definitions(name), sites, "caller").items():
            await listing.add(f"Calls in {key}:", own)
        await listing.add_definitions("Where these are defined:", sites)
        no = None if sites else await explain_no_calls(deps.code, name, f"No call made by {name} was found")
        return listing.finish(no.text if no is not None else "")


class _CallListing:
    """Writes groups of calls, each line once in its group, until there are too many."""

    def __init__(self, deps: Deps, role: Role, path: str) -> None:
        self._deps = deps
        self._role = role
        self._path = path
        self._report = ToolReport(deps)
        self._shown = 0
        self._left_out = 0

    async def add(self, heading: str, sites: Sequence[CallSite]) -> None:
        """Add a group of calls; nothing where there are none."""
        refs = make_call_refs(sites, self._role)
        if not refs:
            return
        room = max(0, MAX_SITES - self._shown)
        self._shown += min(room, len(refs))
        self._left_out += count_calls(refs[room:])
        self._report.say(f"{heading} {count_calls(refs)}" if room else f"{heading} {count_calls(refs)}, left out")
        meant = _list_meant(sites)
        for ref in refs[:room]:
            at = (ref["path"], ref["start_line"])
            line = (await self._deps.code.read(*at, ref["start_line"])).text.strip()
            times = f" {ref['calls']} times" if ref.get("calls", 1) > 1 else ""
            maybe = f" (possibly {meant[at]})" if ref["ambiguous"] and meant[at] else ""
            self._report.cite(ref, f"{ref['symbol'] or 'module level'}{maybe}{times}: {line}")

    async def add_definitions(self, heading: str, sites: Sequence[CallSite]) -> None:
        """Add where that is defined which is called, the certain first, by the first line of each."""
        ranked = sorted(sites, key=lambda site: site.ambiguous)
        called = {_identify(site.callee): site.callee for site in ranked if site.callee is not None}
        if called:
            self._report.say(heading)
        for definition in list(called.values())[:_MOST_DEFINED]:
            ref = make_definition_ref(definition)
            ref["end_line"] = ref["start_line"]
            line = await self._deps.code.read(ref["path"], ref["start_line"], ref["start_line"])
            self._report.cite(ref, f"{ref['symbol']}: {line.text.strip()}")

    def finish(self, nothing: str) -> ToolEvidence:
        """Return what was listed; the sentence where that is nothing."""
        if not self._shown:
            self._report.say(nothing)
        if self._left_out:
            where = "a path further down" if self._path else "a path"
            self._report.say(f"{self._left_out} more calls are left out. Give {where}, or a qualified name.")
        return self._report.evidence()


def _filter_by_path(sites: Iterable[CallSite], path: str) -> list[CallSite]:
    below = path.strip().removeprefix("./").strip("/")
    return [site for site in sites if not below or f"{site.path}/".startswith(f"{below}/")]


def _group_by_definition(
    definitions: Sequence[Definition], sites: Sequence[CallSite], end: str
) -> dict[str, list[CallSite]]:
    """Group calls by the definition at one end of them, in the order of the definitions."""
    groups: dict[DefinitionKey, list[CallSite]] = {_identify(one): [] for one in definitions}
    places = {_identify(one): one for one in definitions}
    for site in sites:
        at_end: Definition | None = getattr(site, end)
        if at_end is not None:
            groups.setdefault(_identify(at_end), []).append(site)
            places.setdefault(_identify(at_end), at_end)
    return {_describe_definition(places[key]): own for key, own in groups.items() if own}


def _identify(definition: Definition) -> DefinitionKey:
    return definition.path, definition.symbol.qualified_name


def _describe_definition(definition: Definition) -> str:
    symbol = definition.symbol
    return f"{symbol.qualified_name} ({definition.path}:{symbol.start_line}-{symbol.end_line})"


def _list_meant(sites: Iterable[CallSite]) -> dict[tuple[str, int], str]:
    """Name the definitions that the calls on each line may mean, where there are not too many."""
    meant: dict[tuple[str, int], dict[str, None]] = {}
    for site in sites:
        names = meant.setdefault((site.path, site.line), {})
        if site.callee is not None:
            names[site.callee.symbol.qualified_name] = None
    return {at: " or ".join(names) if len(names) <= _MOST_NAMED else "" for at, names in meant.items()}
