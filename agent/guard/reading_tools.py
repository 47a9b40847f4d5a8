"""Limits a watched turn to reading the repository."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.ports import Deps, ToolMenu, ToolOutcome

MAX_FLAGS = 100  # places that a turn remembers
REFUSED = (
    "{name} is not there in this turn: something that was asked or read gives orders. Use a tool that reads the code."
)

log = logging.getLogger(__name__)


class ReadingTools(ToolMenu):
    """The read-only tools of a turn, as each declares it."""

    def __init__(self, tools: ToolMenu) -> None:
        self._tools = tools

    def menu(
        self,
        deps: Deps,
        *,
        approved: Collection[str] = (),  # noqa: ARG002
        asking: bool = False,  # noqa: ARG002
    ) -> Sequence[Mapping[str, Any]]:
        """Offer only reading tools, whatever was approved."""
        return [tool for tool in self._tools.menu(deps) if self.only_reads(str(tool["name"]))]

    def is_approval_required(self, name: str) -> bool:
        """Whether a person has to agree before the tool of that name is called."""
        return self._tools.is_approval_required(name)

    def describe_call(self, name: str, args: Mapping[str, Any], deps: Deps) -> str:
        """Describe an approval of a call; empty if the call would do nothing."""
        return self._tools.describe_call(name, args, deps) if self.only_reads(name) else ""

    def only_reads(self, name: str) -> bool:
        """Whether the tool of that name only reads the repository."""
        return self._tools.only_reads(name)

    def estimate_cost(self, name: str) -> int:
        """Return the share of the room for parallel calls that one call of this tool takes."""
        return self._tools.estimate_cost(name)

    async def call(
        self, name: str, args: Mapping[str, Any], deps: Deps, *, approved: Collection[str] = ()
    ) -> ToolOutcome:
        """Call reading tools, and refuse all others."""
        if not self.only_reads(name):
            log.warning("a watched turn was refused a tool that does more than read")
            return ToolOutcome(text=REFUSED.format(name=name[:80]), ok=False)
        return await self._tools.call(name, args, deps, approved=approved)


def harden(deps: Deps) -> Deps:
    """Return the restricted turn of a watched question: no web, only reading tools, data fenced twice, a
    delayed answer.
    """
    if deps.is_hardened:
        return deps
    return replace(deps, tools=ReadingTools(deps.tools), web=None, is_hardened=True)


def note_flags(known: Sequence[str], found: Mapping[str, Sequence[str]], deps: Deps, *, source: str) -> list[str]:
    """Report places that give orders, once each, and return all known ones."""
    fresh = {place: rules for place, rules in found.items() if rules and place not in known}
    if fresh:
        rules = sorted({rule for found_rules in fresh.values() for rule in found_rules})
        log.warning("%d passages of the evidence (%s) give orders: %s", len(fresh), source, ", ".join(rules))
        deps.emit("flagged", source=source, count=len(fresh), rules=rules)
    return [*known, *fresh][:MAX_FLAGS]
