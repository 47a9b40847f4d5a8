"""The definition of a tool, and the report that a call returns: bounded, masked, with its evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from agent.evidence.refs import format_place
from agent.ports import Deps
from agent.state import EvidenceRef
from agent.text.escaping import replace_control_characters

MAX_CHARACTERS = 12_000
MAX_LINE = 400
ROOM_FOR_NOTES = 800
MORE = "There is more; ask for less at a time."

# The cost of a call, in lookups by name.
LOOKUP = 1
SEARCH = 2  # ranks or reads all files
HISTORY = 3  # runs git, which may go through every commit
OUTSIDE = 6  # waits for another machine

Arguments = TypeVar("Arguments", bound=BaseModel)


class ToolReport:
    """Collects lines of text and pieces of evidence until there is no more room."""

    def __init__(self, redact: Callable[[str], str], room: int = MAX_CHARACTERS) -> None:
        self._redact = redact
        self._lines: list[str] = []
        self._refs: list[EvidenceRef] = []
        self._room = room - ROOM_FOR_NOTES
        self._reserve = ROOM_FOR_NOTES - len(MORE) - 1  # for a remark once there is no more room
        self.is_full = False

    def say(self, line: str) -> None:
        """Add a sentence."""
        text = self._clean(line)[: 2 * MAX_LINE]
        if not self._add_line(text) and len(text) < self._reserve:
            self._reserve -= len(text) + 1
            self._lines.append(text)

    def cite(self, ref: EvidenceRef, line: str) -> None:
        """Add one line of text about the lines that a reference points at."""
        text = f"[{format_place(ref)}] {self._clean(line)[:MAX_LINE]}"
        if self._add_line(text):
            self._refs.append(ref)

    def show(self, ref: EvidenceRef, source: str, *, about: str = "") -> int:
        """Add numbered lines of a file, and return the last; refer only to lines that fit."""
        heading = f"[{format_place(ref)}]" + (f" {self._clean(about)[:MAX_LINE]}" if about else "")
        if not self._add_line(heading):
            return ref["start_line"] - 1
        kept = self._add_numbered(ref["start_line"], self._clean(source).split("\n"))
        if kept:
            cut: EvidenceRef = {**ref, "end_line": min(ref["end_line"], ref["start_line"] + kept - 1)}
            self._lines[-kept - 1] = f"[{format_place(cut)}]" + heading.removeprefix(f"[{format_place(ref)}]")
            self._refs.append(cut)
        else:
            self._lines.pop()
        return ref["start_line"] + kept - 1

    def evidence(self) -> ToolEvidence:
        """Return what was collected."""
        note = [MORE] if self.is_full else []
        return ToolEvidence(text="\n".join([*self._lines, *note]), refs=tuple(self._refs))

    def _add_numbered(self, first: int, lines: Sequence[str]) -> int:
        """Add lines while they fit and return their number."""
        for count, line in enumerate(lines):
            if not self._add_line(f"{first + count:5} {line[:MAX_LINE]}"):
                return count
        return len(lines)

    def _add_line(self, line: str) -> bool:
        self._room -= len(line) + 1
        self.is_full = self.is_full or self._room < 0
        if not self.is_full:
            self._lines.append(line)
        return not self.is_full

    def _clean(self, text: str) -> str:
        return replace_control_characters(self._redact(text))


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEvidence:
    """The result of a tool: the text that a model reads, and references to the lines in it."""

    text: str
    refs: tuple[EvidenceRef, ...] = ()


class Tool(ABC, Generic[Arguments]):
    """A function that a model may call. It reads only through `deps`, and raises `IndexerError` or `AgentError`."""

    name: ClassVar[str]
    description: ClassVar[str]
    arguments: type[Arguments]
    label: ClassVar[str] = "Using"  # its action, for people, while it runs ...
    argument_shown: ClassVar[str] = ""  # ... and the argument that says with what; none shows the tool's name
    cost: ClassVar[int] = LOOKUP  # how much of the room for calls side by side it takes
    seconds: ClassVar[float] = 0.0  # how long a call may take; 0: as long as that of any tool
    needs_approval: ClassVar[bool] = False  # a person is shown what `describe_call` says of it, and agrees or not
    source: ClassVar[str] = "tools"  # where what it brings comes from, when that gives orders
    is_repeatable: ClassVar[bool] = True  # the same call at the same commit brings the same, and is made once
    only_reads: ClassVar[bool] = False  # a tool that does nothing but read the repository stays in a watched turn

    @property
    def model_name(self) -> str:
        """The name that models know it by."""
        return self.name

    @abstractmethod
    async def run(self, args: Arguments, deps: Deps) -> ToolEvidence:
        """Run the tool once; the same arguments at the same commit give the same evidence."""

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Describe a call's target for people who wait; the arguments are the model's."""
        return str(args.get(self.argument_shown, ""))

    def describe_call(self, args: Mapping[str, Any], deps: Deps) -> str:
        """Describe an approval, with all arguments as written; empty for a call that does nothing."""
        listed = ", ".join(f"{name} = {value}" for name, value in args.items())
        return deps.redact(f"{self.name}: {listed}" if listed else self.name)

    def is_available(self, deps: Deps) -> bool:  # noqa: ARG002 - what it depends on is the tool's own business
        """Whether the turn meets the tool's requirements."""
        return True
