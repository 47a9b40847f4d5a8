"""The callers and the callees of a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.evidence.coverage import explain_no_calls
from agent.evidence.named_uses import NamedDefinition, find_named_lines, find_named_uses
from agent.evidence.refs import count_calls, make_call_refs
from agent.lookups.lookup import Arguments, CodeLookup, Look, Name, Offset, Path, clean_path
from agent.lookups.results import CallResult, FoundCall, cut_line, name_place
from agent.questions.mentions import normalize_name
from agent.repositories.joined_code import place_path
from agent.state import EvidenceRef, Role
from indexer.types import CallSite, Definition

_MAX_NAMED_USES = 10
_MAX_DEFINED = 8  # callees whose definition is named
_MAX_NAMED = 4  # definitions that a possible call may mean

DefinitionKey = tuple[str, str]
LineKey = tuple[str, int]


class CallArguments(Arguments):
    """The name of a function, method or class."""

    name: Name
    path: Annotated[Path, Field(description="Only calls in this file or folder; empty for all.")] = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class _Calls(CodeLookup[CallArguments, CallResult]):
    """Follows the calls of a function; a subclass sets the direction."""

    arguments = CallArguments
    result = CallResult
    argument_shown = "name"
    role: ClassVar[Role]
    absence: ClassVar[str]  # said of a name without such calls

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the function and the path."""
        path = str(args.get("path") or "")[:100]
        return f"{args.get('name', args.get('function_name', ''))}{f' in {path}' if path else ''}"

    async def find(self, args: CallArguments, look: Look) -> CallResult:
        """List the calls with their lines, by their target or caller."""
        name = normalize_name(args.name)
        is_up = self.role == "caller"
        found = await (look.code.callers(name, unresolved=True) if is_up else look.code.callees(name))
        below = clean_path(place_path(look.code, args.path))
        sites = [site for site in found if not below or f"{site.path}/".startswith(f"{below}/")]
        listing = await _CallListing.prepare(look, self.role, sites, args)
        certain = [site for site in sites if not (is_up and site.ambiguous)]
        groups = _group_by_definition(await look.code.definitions(name), certain, "callee" if is_up else "caller")
        for key, own in groups.items():
            await listing.add(f"Calls {'of' if is_up else 'in'} {key}:", own)
        if is_up:
            await listing.add(
                "Possibly calls of it, where the syntax does not tell which definition or what class is meant:",
                [site for site in sites if site.ambiguous],
            )
        else:
            await _cite_definitions(look, sites)
        if not sites:
            look.deny(await explain_no_calls(look.code, name[:200], self.absence.format(name[:200])))
        if is_up:
            await _cite_named_uses(look, name, below, is_called=bool(sites))
        return CallResult(**look.head, calls=listing.calls)


class FindCallers(_Calls):
    """Finds the callers of a function."""

    name = "find_callers"
    known_as = {"model": "get_callers", "api": "callers"}  # noqa: RUF012
    title = "Find callers"
    description = "List the lines that call a function, method or class, with possible calls listed separately."
    label = "Looking up callers of"
    role = "caller"
    absence = "No call of {} was found"


class FindCallees(_Calls):
    """Finds the functions that a function calls."""

    name = "find_callees"
    known_as = {"model": "get_callees", "api": "callees"}  # noqa: RUF012
    title = "Find callees"
    description = "List what a function or method calls, and where that is defined."
    label = "Looking up callees of"
    role = "callee"
    absence = "No call made by {} was found"


class _CallListing:
    """Writes groups of calls, listing those of one page, each line once per group."""

    def __init__(self, look: Look, role: Role, page: Sequence[CallSite], lines: Mapping[LineKey, str]) -> None:
        self._look = look
        self._role = role
        self._lines = lines
        self.calls = tuple(
            FoundCall(
                path=site.path,
                line=site.line,
                name=site.name,
                caller=name_place(site.caller),
                callee=name_place(site.callee),
                is_certain=not site.ambiguous,
                code=cut_line(look.mask(lines[site.path, site.line])),
            )
            for site in page
        )

    @classmethod
    async def prepare(cls, look: Look, role: Role, sites: Sequence[CallSite], args: CallArguments) -> _CallListing:
        """Choose the page of the calls, and read its lines."""
        code = {one.path for one in await look.code.files() if one.source_type == "code"}
        first: dict[tuple[str, int, str], CallSite] = {}
        for site in sorted(sites, key=lambda site: site.ambiguous):  # each line that calls, certain before possible
            first.setdefault((site.path, site.line, site.name), site)
        key = lambda site: (site.ambiguous, site.path not in code, site.path, site.line)  # noqa: E731
        page = look.take_page(sorted(first.values(), key=key), args.limit, args.offset)
        lines = {at: (await look.code.read(at[0], at[1], at[1])).text.strip() for at in map(_locate, page)}
        return cls(look, role, page, lines)

    async def add(self, heading: str, sites: Sequence[CallSite]) -> None:
        """Add a group of calls; nothing if it is empty."""
        refs = make_call_refs(sites, self._role)
        listed = [ref for ref in refs if (ref["path"], ref["start_line"]) in self._lines]
        if not refs:
            return
        self._look.say(f"{heading} {count_calls(refs)}{'' if listed else ', not on this page'}")
        meant = _list_meant(sites)
        for ref in listed:
            self._cite(ref, meant[ref["path"], ref["start_line"]])

    def _cite(self, ref: EvidenceRef, meant: str) -> None:
        times = f" {ref['calls']} times" if ref.get("calls", 1) > 1 else ""
        maybe = f" (possibly {meant})" if ref["ambiguous"] and meant else ""
        line = self._lines[ref["path"], ref["start_line"]]
        self._look.cite(ref, f"{ref['symbol'] or 'module level'}{maybe}{times}: {line}")


async def _cite_named_uses(look: Look, name: str, below: str, *, is_called: bool) -> None:
    """Add the lines that register it by name; if nothing calls it, also those that pass the name on."""
    target = await NamedDefinition.find(look.code, name)
    found = await find_named_uses(look.code, target)
    if not is_called:
        found += await find_named_lines(look.code, target)
    uses = [ref for ref in found if not below or f"{ref['path']}/".startswith(f"{below}/")]
    if uses:
        look.say("Used by its name:")
    for ref in uses[:_MAX_NAMED_USES]:
        text = (await look.code.read(ref["path"], ref["start_line"], ref["start_line"])).text.strip()
        look.cite(ref, f"{ref['kind']}: {text}")


async def _cite_definitions(look: Look, sites: Sequence[CallSite]) -> None:
    """Add the first lines of the called definitions, certain ones first."""
    ranked = sorted(sites, key=lambda site: site.ambiguous)
    called = {_identify(site.callee): site.callee for site in ranked if site.callee is not None}
    if called:
        look.say("Where these are defined:")
    for definition in list(called.values())[:_MAX_DEFINED]:
        await look.cite_first_line(definition)


def _locate(site: CallSite) -> LineKey:
    return site.path, site.line


def _group_by_definition(
    definitions: Sequence[Definition], sites: Sequence[CallSite], end: str
) -> dict[str, list[CallSite]]:
    """Group calls by the definition at one end of them, in the definitions' order."""
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


def _list_meant(sites: Iterable[CallSite]) -> dict[LineKey, str]:
    """Name the possible definitions of the calls on each line, if there are few."""
    meant: dict[LineKey, dict[str, None]] = {}
    for site in sites:
        names = meant.setdefault(_locate(site), {})
        if site.callee is not None:
            names[site.callee.symbol.qualified_name] = None
    return {at: " or ".join(names) if len(names) <= _MAX_NAMED else "" for at, names in meant.items()}
