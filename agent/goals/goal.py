"""The port of a goal: a check that finds out whether it is reached, and its description for a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from agent.goals.goal_state import GoalState
from agent.goals.workspace import Workspace
from agent.ports import Deps
from agent.sandbox.patch import FileChange

MAX_COMMANDS = 200  # that the record of a run keeps

Arguments = TypeVar("Arguments", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalResult:
    """What a check has found; `reason` is a sentence for people, and `details` hold what JSON can."""

    achieved: bool
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Goal(ABC, Generic[Arguments]):
    """Something to be reached by changing the files of a working copy.

    `name` is what people call the kind of goal by, and `arguments` the form that they fill in for it. `condition` says
    when it is reached, before the command of the check, and `reached` names that it is.
    """

    name: ClassVar[str]
    condition: ClassVar[str] = "It is reached when this succeeds"
    reached: ClassVar[str] = "reached"
    arguments: type[Arguments]

    def __init__(self, args: Arguments) -> None:
        self.args = args

    @abstractmethod
    async def check(self, state: GoalState, workspace: Workspace) -> GoalResult:
        """Find out whether the goal is reached; nothing of the workspace is changed by that."""

    @abstractmethod
    def system_prompt(self) -> str:
        """Tell a model what it is to reach, and how that is checked."""

    @abstractmethod
    def describe_command(self) -> str:
        """Write the command of the check as a person would type it."""

    async def begin(self, state: GoalState, workspace: Workspace) -> GoalResult | None:  # noqa: ARG002 - others look
        """Make the check at the commit; `GoalUnreachable` where no change of files can reach the goal."""
        return None

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Return the changes that count: the check is made with these alone, and people are handed no others."""
        return changes


def describe_left_out(changes: Sequence[FileChange], counted: Sequence[FileChange]) -> str:
    """Say which changes do not count, after a sentence on the check; empty where all do."""
    paths = [one.path.decode(errors="replace") for one in changes if one not in counted]
    return f" Left out of the check: your changes of {', '.join(paths)[:500]}." if paths else ""


GoalMaker = Callable[[str, Mapping[str, Any]], Goal[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalDeps(Deps):
    """What the nodes of a goal run work with, beside what those of a turn do."""

    goal: Goal[Any]
    workspace: Workspace


def add_commands(state: GoalState, deps: GoalDeps) -> list[str]:
    """Return the record of what a run has run in the sandbox, with what came last; the oldest go beyond a limit."""
    return [*state.get("commands", []), *deps.workspace.record.take()][-MAX_COMMANDS:]


_PYTEST = frozenset("conftest.py pytest.ini .pytest.ini tox.ini setup.cfg pyproject.toml pytest.toml".split())
# What Python loads by itself, or before what it is asked for.
_PYTHON = frozenset({"sitecustomize.py", "usercustomize.py"})
_ANALYSIS = frozenset(
    {"pyproject.toml", "setup.cfg", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", "pyrightconfig.json"}
)


def is_pytest_setting(path: str) -> bool:
    """Whether a file says which tests there are, or how they are run."""
    name = PurePosixPath(path).name
    return name in _PYTEST or name in _PYTHON or name.endswith(".pth")


def is_analysis_setting(path: str) -> bool:
    """Whether a file says what mypy, pyright or ruff look for."""
    return PurePosixPath(path).name in _ANALYSIS
