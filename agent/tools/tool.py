"""What a tool is: a name, a description, a form for its arguments, and a coroutine that brings evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from agent.ports import Deps
from agent.state import EvidenceRef

Arguments = TypeVar("Arguments", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEvidence:
    """What a tool brought: the text that a model reads, and references to the lines that stand in it."""

    text: str
    refs: tuple[EvidenceRef, ...] = ()


class Tool(ABC, Generic[Arguments]):
    """Something that a model may have done. It reads through `deps` alone and raises `IndexerError` or `AgentError`."""

    name: ClassVar[str]
    description: ClassVar[str]
    arguments: type[Arguments]
    label: ClassVar[str] = "Using"  # what it does, as people read it while it does it ...
    argument_shown: ClassVar[str] = ""  # ... and the argument that says with what; none shows the tool's name
    needs_approval: ClassVar[bool] = False  # a person is shown what `describe_call` says of it, and agrees or not
    source: ClassVar[str] = "tools"  # where what it brings comes from, when that gives orders
    only_reads: ClassVar[bool] = False  # a tool that does nothing but read the repository stays in a watched turn

    @abstractmethod
    async def run(self, args: Arguments, deps: Deps) -> ToolEvidence:
        """Do it once; the same arguments at the same commit bring the same evidence."""

    def describe_call(self, args: Mapping[str, Any], deps: Deps) -> str:
        """Say what a person approves, with all arguments as a model wrote them; empty where the call does nothing."""
        said = ", ".join(f"{name} = {value}" for name, value in args.items())
        return deps.redact(f"{self.name}: {said}" if said else self.name)

    def is_available(self, deps: Deps) -> bool:  # noqa: ARG002 - what it depends on is the tool's own business
        """Whether the turn has what the tool needs."""
        return True
