"""The port of a goal, its check, and the state of a run towards it.

The state holds plain values, because every step is checkpointed.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Generic, TypedDict, TypeVar

from pydantic import BaseModel

from agent.errors import WorkspaceTooLarge
from agent.goals.workspace import Workspace
from agent.limits import MAX_GOAL_ITERATIONS, TurnLimits
from agent.ports import Deps
from agent.sandbox.patch import FileChange, FileVersion
from agent.sandbox.sandbox import SandboxLimits
from agent.state import merge_messages
from agent.text.escaping import format_code_span

MAX_MESSAGES = 40
MAX_CHANGED_BYTES = 2_000_000  # of all files that a run has changed


class PendingCall(TypedDict):
    """A tool call by the model; its arguments are unchecked."""

    id: str
    name: str
    args: dict[str, Any]


class GoalToolResult(TypedDict):
    """A call that was made; its text is in the evidence table under `key`."""

    tool: str
    ok: bool
    key: str


class StoredChange(TypedDict):
    """A changed file; each side is its mode and content, None if there is no file."""

    path: bytes
    old: list[Any] | None
    new: list[Any] | None


class GoalUsage(TypedDict):
    """The model usage of a run so far."""

    calls: int
    input_tokens: int
    output_tokens: int


class GoalState(TypedDict, total=False):
    """The channels of the graph."""

    run_id: str
    goal: str  # the name of its kind
    arguments: dict[str, Any]
    task: str  # the person's request, verbatim
    model_name: str
    hitl: bool  # whether a person is asked after every iteration
    approved: list[str]  # the tools that the approval of the run covers
    nonce: str  # of the tags around data in the prompts

    messages: Annotated[list[Any], merge_messages]  # of LangChain
    pending_tool_calls: list[PendingCall]
    tool_results: list[GoalToolResult]  # of the last iteration
    iteration: int
    max_iterations: int
    usage: GoalUsage

    changes: list[StoredChange]  # the working copy, as far as it differs from the commit
    checked: str  # the changes at the last check
    idle: int  # how many replies in a row have called nothing
    goal_achieved: bool
    goal_reason: str
    goal_details: dict[str, Any]

    commands: list[str]  # everything that was run, oldest first
    ended_by: str  # why the run ends though the goal is not reached; empty while it runs
    is_aborted: bool


def store_changes(changes: Iterable[FileChange]) -> list[StoredChange]:
    """Write changes for the state; `WorkspaceTooLarge` if there are too many."""
    stored: list[StoredChange] = [
        {"path": one.path, "old": _store_version(one.old), "new": _store_version(one.new)} for one in changes
    ]
    size = sum(len(side[1]) for one in stored for side in (one["old"], one["new"]) if side is not None)
    if size > MAX_CHANGED_BYTES:
        largest = max(stored, key=lambda one: len(one["new"][1]) if one["new"] else 0)
        raise WorkspaceTooLarge(
            f"The changed files have {size:,} bytes; the limit is {MAX_CHANGED_BYTES:,}. Remove generated files; the "
            f"largest is {largest['path'].decode(errors='replace')[:200]}."
        )
    return stored


def hash_changes(changes: Sequence[StoredChange]) -> str:
    """Hash a set of changes, so that no set is checked twice."""
    return hashlib.blake2b(repr(list(changes)).encode(), digest_size=12).hexdigest()


def read_stored_changes(stored: Sequence[StoredChange]) -> list[FileChange]:
    """Return the changes in a state."""
    return [
        FileChange(path=one["path"], old=_read_version(one["old"]), new=_read_version(one["new"])) for one in stored
    ]


def _store_version(version: FileVersion | None) -> list[Any] | None:
    return [version.mode, version.content] if version is not None else None


def _read_version(stored: Sequence[Any] | None) -> FileVersion | None:
    return FileVersion(mode=stored[0], content=stored[1]) if stored is not None else None


MAX_COMMANDS = 200  # that the record of a run keeps

Arguments = TypeVar("Arguments", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalResult:
    """The result of a check; `reason` is a sentence for people, and `details` is JSON-compatible."""

    achieved: bool
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Goal(ABC, Generic[Arguments]):
    """A state to reach by changing the files of a working copy.

    `name` is the kind of goal for people, `arguments` its form. `condition` says when it is
    reached, and `reached` that it is.
    """

    name: ClassVar[str]
    condition: ClassVar[str] = "It is reached when this succeeds"
    reached: ClassVar[str] = "reached"
    arguments: type[Arguments]

    def __init__(self, args: Arguments) -> None:
        self.args = args

    @abstractmethod
    async def check(self, state: GoalState, deps: GoalDeps) -> GoalResult:
        """Check whether the goal is reached, without changing the workspace."""

    @abstractmethod
    def system_prompt(self) -> str:
        """Tell a model its goal, and how it is checked."""

    @abstractmethod
    def describe_command(self) -> str:
        """Write the command of the check in the form that a person would type."""

    async def begin(self, state: GoalState, workspace: Workspace) -> GoalResult | None:  # noqa: ARG002 - others look
        """Make the check at the commit; `GoalUnreachable` if no change of files can reach the goal."""
        return None

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Return the changes that count: only these are checked and handed to people."""
        return changes


def describe_left_out(changes: Sequence[FileChange], counted: Sequence[FileChange]) -> str:
    """Say which changes do not count, after a sentence on the check; empty if all do."""
    paths = [one.path.decode(errors="replace") for one in changes if one not in counted]
    return f" Left out of the check: your changes of {', '.join(paths)[:500]}." if paths else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalDeps(Deps):
    """The dependencies of a goal run's nodes, in addition to a turn's."""

    commit: str
    goal: Goal[Any]
    workspace: Workspace


def add_commands(state: GoalState, deps: GoalDeps) -> list[str]:
    """Return the record of the commands of a run, newest last; the oldest are dropped beyond a limit."""
    return [*state.get("commands", []), *deps.workspace.record.take()][-MAX_COMMANDS:]


_PYTEST = frozenset("conftest.py pytest.ini .pytest.ini tox.ini setup.cfg pyproject.toml pytest.toml".split())
# Files that Python loads on its own, before the program.
_PYTHON = frozenset({"sitecustomize.py", "usercustomize.py"})
_ANALYSIS = frozenset(
    {"pyproject.toml", "setup.cfg", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", "pyrightconfig.json"}
)


def is_pytest_setting(path: str) -> bool:
    """Whether a file selects or configures tests."""
    name = PurePosixPath(path).name
    return name in _PYTEST or name in _PYTHON or name.endswith(".pth")


def is_analysis_setting(path: str) -> bool:
    """Whether a file configures mypy, pyright or ruff."""
    return PurePosixPath(path).name in _ANALYSIS


MAX_ITERATIONS = 100
LONGEST_TASK = 4_000  # characters
_MAX_COMMAND = 8_000
_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalRequest:
    """A request for a goal run: a kind of goal with its arguments, and the person's own words.

    With `hitl` a person is asked after every iteration.
    """

    goal: str
    arguments: Mapping[str, Any]
    task: str
    repository: str | None = None
    max_iterations: int = MAX_GOAL_ITERATIONS
    hitl: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalProposal:
    """A proposed goal run: its task, its command, its sandbox and its limits."""

    request: GoalRequest
    repository: str
    commit: str
    condition: str
    command: str
    model: str
    mechanism: str
    limits: TurnLimits
    sandbox_limits: SandboxLimits = field(default_factory=SandboxLimits)

    def to_text(self) -> str:
        """Write it in full as plain Markdown, because somebody has to approve it."""
        limits, box, most = self.limits, self.sandbox_limits, self.request.max_iterations
        rounds = f"{most} iteration{'s' * (most != 1)}"
        minutes, megabytes = f"{limits.seconds / 60:.0f} minutes", box.memory_bytes // _MEGABYTE
        return f"""\
A goal run on {format_code_span(self.repository)} at `{self.commit[:7]}`: \
{format_code_span(self.request.task, longest=LONGEST_TASK)}.
- {self.condition}: {format_code_span(self.command, longest=_MAX_COMMAND)}
- {format_code_span(self.model)} writes code and chooses further commands; each is shown as it runs.
- All of it runs in a sandbox ({self.mechanism}), on a copy of the commit, without a network. Nothing of yours is \
changed: the result is a patch that you may apply.
- At most {rounds}, {minutes}, {limits.calls} calls of the model and \
{limits.tokens:,} tokens; a command at most {box.seconds:.0f} seconds and {megabytes:,} MB of memory."""
