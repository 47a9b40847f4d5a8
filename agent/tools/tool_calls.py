"""Calls of tools, side by side: their text goes to the evidence table, their lines into the turn's evidence."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from agent.guard.reading_tools import note_flags
from agent.ports import Deps, ToolOutcome
from agent.state import EvidenceRef, ToolRecord
from agent.text.storable import is_storable, make_storable

MAX_CALLS = 8  # at once
MAX_COST = 16  # of calls at once
MAX_EVIDENCE = 120  # references in a turn
MAX_HISTORY = 60  # records in a turn
_LONGEST_ARGUMENT = 200
TOO_MANY = (
    f"Too many calls at once; at most {MAX_CALLS} are made, fewer where they cost much. "
    "Call it again if it is still needed."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallResult:
    """One call and what came of it; `key` finds its text."""

    key: str
    tool: str
    args: Mapping[str, Any]
    outcome: ToolOutcome

    @property
    def record(self) -> ToolRecord:
        """What the turn remembers of the call."""
        return {
            "tool": make_storable(self.tool[:80]),
            "args": shorten_arguments(self.args),
            "ok": self.outcome.ok,
            "found": len(self.outcome.refs),
            "key": self.key,
        }


class ToolCalls:
    """Makes the calls of one round: the same call of several steps that are taken side by side is made once."""

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
    """Make a call; what a person had to approve is kept as soon as it is there, and not done again after a crash."""
    if name not in approved:
        return await deps.tools.call(name, args, deps, approved=approved)
    key = f"outcome {make_call_key(name, args)}"
    if (kept := (await deps.evidence.texts([key])).get(key)) is not None:
        return _read_outcome(kept)
    outcome = await deps.tools.call(name, args, deps, approved=approved)
    if outcome.ok:
        await deps.evidence.keep(key, json.dumps(asdict(outcome)))
    return outcome


def _read_outcome(kept: str) -> ToolOutcome:
    fields = json.loads(kept)
    return ToolOutcome(**{**fields, "refs": tuple(fields["refs"]), "flags": tuple(fields["flags"])})


def _count_affordable(names: Sequence[str], deps: Deps) -> int:
    """Count how many of the calls are made at once, in their order; the first always is."""
    costs = accumulate(map(deps.tools.estimate_cost, names[:MAX_CALLS]))
    return max(sum(cost <= MAX_COST for cost in costs), min(1, len(names)))


def make_call_key(name: str, args: Mapping[str, Any], *more: str) -> str:
    """Name a call: the same call has the same key, so that repeating it after a crash changes nothing."""
    call = json.dumps([name, dict(args), *more], sort_keys=True, default=str)
    return hashlib.blake2b(call.encode(), digest_size=12).hexdigest()


def shorten_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Cut arguments to what is worth remembering; a model may write megabytes."""
    return {make_storable(str(name)[:40]): _shorten_argument(value) for name, value in list(args.items())[:8]}


def _shorten_argument(value: object) -> object:
    is_small = isinstance(value, float | int | None) and is_storable(value)
    return value if is_small else make_storable(str(value)[:_LONGEST_ARGUMENT])


def add_flags(flagged: Sequence[str], results: Sequence[ToolCallResult], deps: Deps) -> list[str]:
    """Add the results that give orders to what the turn knows of such places."""
    for source in dict.fromkeys(one.outcome.source for one in results):
        of_source = {one.key: one.outcome.flags for one in results if one.outcome.source == source}
        flagged = note_flags(flagged, of_source, deps, source=source)
    return list(flagged)


def merge_refs(evidence: Sequence[EvidenceRef], results: Sequence[ToolCallResult]) -> list[EvidenceRef]:
    """Add what calls have read to the evidence of the turn; what is there already stays as it is."""
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
