"""The tools by name: the menu for models, and the one way to call them, in parallel if there are several calls."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

from cachetools import LRUCache
from pydantic import BaseModel, ValidationError

from agent.errors import AgentError, CodeMoved
from agent.evidence.refs import tell_places
from agent.guard.evidence_check import find_orders, list_rules, mark_orders
from agent.guard.reading_tools import note_flags
from agent.lookups.catalogue import LOOKUPS
from agent.lookups.tool import Tool
from agent.ports import CodeSearch, Deps, ToolMenu, ToolOutcome
from agent.prompts.output_schemas import make_schema
from agent.repositories.joined_code import JoinedCode
from agent.state import EvidenceRef, ToolRecord
from agent.text.storable import is_storable, make_storable
from agent.tools.web_search import WebSearchTool
from indexer.errors import IndexerError

MAX_CACHED = 256  # results, of all commits
SECONDS = 20.0  # for one call
LONGEST_ARGUMENTS = 20_000  # characters of JSON
REPOSITORY = "repository"  # the argument that every reading tool takes where there are several
LONGEST_RESULT = 40_000  # characters; our own tools stay far below

log = logging.getLogger(__name__)


class ToolRegistry(ToolMenu):
    """Offers tools and calls them; the same call at the same commit is made once."""

    def __init__(self, tools: Iterable[Tool[Any]], *, seconds: float = SECONDS) -> None:
        self._tools = {tool.model_name: tool for tool in tools}
        self._named = {tool.name: tool for tool in self._tools.values()} | self._tools
        self._seconds = seconds
        self._offers: dict[str, Mapping[str, Any]] = {}  # made when first asked for: pydantic takes 3 ms for each
        self._results: LRUCache[tuple[str, ...], ToolOutcome] = LRUCache(MAX_CACHED)

    def menu(self, deps: Deps, *, approved: Collection[str] = (), asking: bool = False) -> Sequence[Mapping[str, Any]]:
        """List the callable tools as `{"name", "description", "parameters"}`; `approved` are names a person agreed to.

        With `asking`, also those that a person can be asked about.
        """
        return [
            self._offer(tool, deps)
            for tool in self._tools.values()
            if tool.is_available(deps) and (asking or not tool.needs_approval or tool.model_name in approved)
        ]

    def _offer(self, tool: Tool[Any], deps: Deps) -> Mapping[str, Any]:
        if tool.model_name not in self._offers:
            arguments: type[BaseModel] = tool.arguments
            made = {"name": tool.model_name, "description": tool.description, "parameters": make_schema(arguments)}
            self._offers[tool.model_name] = made
        offer = self._offers[tool.model_name]
        return _offer_repositories(offer, deps.code) if tool.only_reads else offer

    def is_approval_required(self, name: str) -> bool:
        """Whether a person has to agree before the tool of that name is called."""
        tool = self._named.get(name)
        return tool is not None and tool.needs_approval

    def describe_call(self, name: str, args: Mapping[str, Any], deps: Deps) -> str:
        """Describe what a person would approve with a call; empty if it would do nothing."""
        tool = self._named.get(name)
        return tool.describe_call(args, deps) if tool is not None and tool.is_available(deps) else ""

    def only_reads(self, name: str) -> bool:
        """Whether the tool of that name only reads the repository."""
        tool = self._named.get(name)
        return tool is not None and tool.only_reads and not tool.needs_approval

    def estimate_cost(self, name: str) -> int:
        """Return the share of the room for parallel calls that one call of this tool takes."""
        tool = self._named.get(name)
        return tool.cost if tool is not None else 0

    async def call(
        self, name: str, args: Mapping[str, Any], deps: Deps, *, approved: Collection[str] = ()
    ) -> ToolOutcome:
        """Call a tool; an error in the call or in the tool becomes an outcome that explains it."""
        tool = self._named.get(name)
        if tool is None or not tool.is_available(deps):
            names = ", ".join(one.model_name for one in self._tools.values() if one.is_available(deps))
            return _make_refusal(f"There is no tool {name[:80]!r}. The tools are: {names}.")
        if tool.needs_approval and name not in approved:
            return _make_refusal(f"{name} needs the approval of the person who asked.")
        shown = {
            str(key)[:40]: deps.redact(str(value)[:LONGEST_ARGUMENTS])[:200] for key, value in list(args.items())[:8]
        }
        target = deps.redact(tool.describe_target(args)[:LONGEST_ARGUMENTS])[:200]
        call = uuid.uuid4().hex
        deps.emit("tool_start", tool=name, call=call, args=shown, label=tool.label, shown=target)
        outcome = await self._call_narrowed(tool, args, deps)
        deps.emit("tool_end", tool=name, call=call, ok=outcome.ok, found=len(outcome.refs))
        if any(ref["path"] for ref in outcome.refs):
            tell_places(deps, outcome.refs)
        return outcome

    async def _call_narrowed(self, tool: Tool[Any], args: Mapping[str, Any], deps: Deps) -> ToolOutcome:
        """Call a tool in the repository that the call names, or in all."""
        code = deps.code
        named = args.get(REPOSITORY) if isinstance(code, JoinedCode) and tool.only_reads else None
        if not isinstance(code, JoinedCode) or not named:
            return await self._call_checked(tool, args, deps)
        wanted = str(named)[:LONGEST_ARGUMENTS].strip().strip("/").lower()
        names = {name.lower(): name for name in code.members}
        labels = {code.labels.by_name[name].lower(): name for name in code.members}
        name = names.get(wanted) or labels.get(wanted)
        if name is None:
            return _make_refusal(f"There is no repository {wanted[:80]!r}. There are: {', '.join(code.members)}.")
        return await self._call_checked(tool, args, replace(deps, code=code.narrow(name)))

    async def _call_checked(self, tool: Tool[Any], args: Mapping[str, Any], deps: Deps) -> ToolOutcome:
        try:
            checked = tool.arguments.model_validate(_check_size(args), strict=False, extra="ignore")
        except (ValidationError, ValueError) as error:
            return _make_refusal(f"The arguments of {tool.model_name} are wrong: {_describe_error(error)}")
        key = (deps.code.repository, deps.code.commit.sha, tool.model_name, checked.model_dump_json())
        if (cached := self._results.get(key)) is not None:
            return cached
        outcome = await self._run(tool, checked, deps)
        # What depends on the person is not for the next one, and branches move.
        # A "no" holds as long as nothing newer is being indexed.
        if outcome.ok and outcome.refs and tool.is_repeatable and not tool.needs_approval:
            self._results[key] = outcome
        return outcome

    async def _run(self, tool: Tool[Any], args: Any, deps: Deps) -> ToolOutcome:
        seconds = tool.seconds or self._seconds
        try:
            async with asyncio.timeout(seconds):
                evidence = await tool.run(args, deps)
        except (IndexerError, AgentError) as error:
            return _make_refusal(deps.redact(str(error)))
        except TimeoutError:
            return _make_refusal(
                f"{tool.model_name} took longer than {seconds:g} seconds and was stopped, as the same call would be "
                "again. Narrow it, for example to a folder, or use another tool."
            )
        except CodeMoved:
            raise
        except Exception:  # a tool may come from anywhere, and one that breaks must not end the turn
            log.exception("the tool %s failed", tool.model_name)
            return _make_refusal(f"{tool.model_name} failed. Try another tool.")
        lines = deps.redact(evidence.text[:LONGEST_RESULT]).split("\n")
        flags = find_orders(lines)
        return ToolOutcome(
            text="\n".join(mark_orders(lines, flags)), refs=evidence.refs, flags=list_rules(flags), source=tool.source
        )


def _offer_repositories(offer: Mapping[str, Any], code: CodeSearch) -> Mapping[str, Any]:
    """Return an offer with the choice of a repository, if there are several."""
    if not isinstance(code, JoinedCode):
        return offer
    choice = {"type": "string", "enum": [*code.members], "description": "The one to look in; leave it out for all."}
    parameters = offer["parameters"]
    properties = {**parameters["properties"], REPOSITORY: choice}
    return {**offer, "parameters": {**parameters, "properties": properties}}


def _check_size(args: Mapping[str, Any]) -> dict[str, Any]:
    if len(json.dumps(dict(args), default=str)) > LONGEST_ARGUMENTS:
        raise ValueError("they are too long.")
    return {key: value for key, value in args.items() if value is not None}


def _describe_error(error: ValidationError | ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    parts = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()[:5]]
    return "; ".join(parts) + "."


def _make_refusal(sentence: str) -> ToolOutcome:
    return ToolOutcome(text=sentence, ok=False)


def make_tool_registry(more: Iterable[Tool[Any]] = (), *, without: Collection[str] = ()) -> ToolRegistry:
    """Return a registry of the answering tools, less some, and with others for another kind of run."""
    tools: tuple[Tool[Any], ...] = (*LOOKUPS, WebSearchTool())
    return ToolRegistry([*(tool for tool in tools if tool.name not in without), *more])


MAX_CALLS = 8  # at once
MAX_COST = 16  # of calls at once
MAX_EVIDENCE = 120  # references in a turn
MAX_HISTORY = 60  # records in a turn
_MAX_ARGUMENT = 200
TOO_MANY = (
    f"Too many calls at once; at most {MAX_CALLS} are made, fewer where they cost much. "
    "Call it again if it is still needed."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallResult:
    """One call and its result; `key` finds its text."""

    key: str
    tool: str
    args: Mapping[str, Any]
    outcome: ToolOutcome

    @property
    def record(self) -> ToolRecord:
        """The turn's record of the call."""
        return {
            "tool": make_storable(self.tool[:80]),
            "args": shorten_arguments(self.args),
            "ok": self.outcome.ok,
            "found": len(self.outcome.refs),
            "key": self.key,
        }


class ToolCalls:
    """Makes the calls of one round, making equal calls of parallel steps once."""

    def __init__(self, deps: Deps, approved: Collection[str]) -> None:
        self.deps = deps
        self.approved = approved
        self._made: dict[str, asyncio.Task[ToolOutcome]] = {}

    async def run(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[ToolCallResult]:
        """Make the calls and keep their texts; those beyond the limits of number and cost are refused."""
        count = _count_affordable([name for name, _ in calls], self.deps)
        made = await asyncio.gather(*(self._call(name, args) for name, args in calls[:count]))
        refused = [
            ToolCallResult(
                key=make_call_key(name, args, "refused"),
                tool=name,
                args=args,
                outcome=ToolOutcome(text=TOO_MANY, ok=False),
            )
            for name, args in calls[count:]
        ]
        results = [*made, *refused]
        for key, text in {one.key: one.outcome.text for one in results}.items():
            await self.deps.evidence.keep(key, text)
        return results

    async def _call(self, name: str, args: Mapping[str, Any]) -> ToolCallResult:
        key = make_call_key(name, args)
        if key not in self._made:
            self._made[key] = asyncio.create_task(_call_once(self.deps, name, args, self.approved))
        return ToolCallResult(key=key, tool=name, args=args, outcome=await self._made[key])


async def _call_once(deps: Deps, name: str, args: Mapping[str, Any], approved: Collection[str]) -> ToolOutcome:
    """Make a call; keep the result of an approved one at once, so a crash does not repeat it."""
    if name not in approved:
        return await deps.tools.call(name, args, deps, approved=approved)
    key = f"outcome {make_call_key(name, args)}"
    if (kept := (await deps.evidence.texts([key])).get(key)) is not None:
        fields = json.loads(kept)
        return ToolOutcome(**{**fields, "refs": tuple(fields["refs"]), "flags": tuple(fields["flags"])})
    outcome = await deps.tools.call(name, args, deps, approved=approved)
    if outcome.ok:
        await deps.evidence.keep(key, json.dumps(asdict(outcome)))
    return outcome


def _count_affordable(names: Sequence[str], deps: Deps) -> int:
    """Count how many of the calls are made now, in order; the first always is."""
    costs = accumulate(map(deps.tools.estimate_cost, names[:MAX_CALLS]))
    return max(sum(cost <= MAX_COST for cost in costs), min(1, len(names)))


def make_call_key(name: str, args: Mapping[str, Any], *more: str) -> str:
    """Name a call by its content, so that repeating it after a crash changes nothing."""
    call = json.dumps([name, dict(args), *more], sort_keys=True, default=str)
    return hashlib.blake2b(call.encode(), digest_size=12).hexdigest()


def shorten_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Cut arguments to a memorable size; a model may write megabytes."""
    return {make_storable(str(name)[:40]): _shorten_argument(value) for name, value in list(args.items())[:8]}


def _shorten_argument(value: object) -> object:
    is_small = isinstance(value, float | int | None) and is_storable(value)
    return value if is_small else make_storable(str(value)[:_MAX_ARGUMENT])


def add_flags(flagged: Sequence[str], results: Sequence[ToolCallResult], deps: Deps) -> list[str]:
    """Add suspicious results to the turn's suspicious places."""
    for source in dict.fromkeys(one.outcome.source for one in results):
        of_source = {one.key: one.outcome.flags for one in results if one.outcome.source == source}
        flagged = note_flags(flagged, of_source, deps, source=source)
    return list(flagged)


def merge_refs(evidence: Sequence[EvidenceRef], results: Sequence[ToolCallResult]) -> list[EvidenceRef]:
    """Add the lines read by calls to the turn's evidence; existing ones stay."""
    known = {_make_key(ref) for ref in evidence}
    added: list[EvidenceRef] = []
    for ref in (ref for one in results for ref in one.outcome.refs):
        if _make_key(ref) not in known:
            known.add(_make_key(ref))
            added.append(ref)
    return [*evidence, *added][:MAX_EVIDENCE]


def append_tool_records(history: Sequence[ToolRecord], results: Sequence[ToolCallResult]) -> list[ToolRecord]:
    """Add calls to the tool history of the turn; the oldest are forgotten beyond a limit."""
    return [*history, *(one.record for one in results)][-MAX_HISTORY:]


def _make_key(ref: EvidenceRef) -> tuple[str, int, int, str]:
    return ref["path"], ref["start_line"], ref["end_line"], ref.get("commit", "")
