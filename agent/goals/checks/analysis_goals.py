"""The goals that mypy, pyright or ruff find fewer problems than at the commit, and no new ones."""

from __future__ import annotations

import json
import shlex
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, field_validator

from agent.errors import GoalUnreachable
from agent.goals.goal import Goal, GoalDeps, GoalResult, GoalState, is_analysis_setting, read_stored_changes
from agent.goals.workspace import Workspace
from agent.sandbox.patch import FileChange
from agent.sandbox.sandbox import Execution, SandboxCommand

_MAX_REPORT = 16 << 20  # bytes
_MAX_LISTED = 30
_NOT_FOUND = 127
_MISSING = 'for path; do [ -e "$path" ] || { printf "%s\\n" "$path"; exit; }; done'
_MARKS = r"(type: *ignore|pyright: *ignore|mypy: *|# *noqa|ruff: *noqa)"
_PROMPT = """
The goal: {tool} finds fewer problems than at the commit, and no new one. The check: {command}

Mend what it finds; comments that silence it count as new findings, and its settings are taken as they stand at the \
commit.
"""

# A finding is where it is told apart from others: path, rule and message, without its line, which moves.
Finding = tuple[str, str, str]


class PathArguments(BaseModel):
    """Files or folders of the repository."""

    paths: list[str] = Field(default_factory=lambda: ["."], min_length=1, max_length=50)

    @field_validator("paths")
    @classmethod
    def _check(cls, paths: list[str]) -> list[str]:
        for path in paths:
            if not path.strip() or path.startswith(("-", "/", "@")) or ".." in path.split("/"):
                raise ValueError(f"{path[:80]!r} is no path inside the repository.")
        return paths


class TypesArguments(PathArguments):
    """Files or folders of the repository, and the type checker."""

    tool: Literal["mypy", "pyright"] = "mypy"


_Paths = TypeVar("_Paths", bound=PathArguments)


class _FewerFindings(Goal[_Paths]):
    """A program reports fewer findings than at the commit, and no new ones."""

    condition = "It is reached when this finds fewer problems than at the commit, and no new one"

    def __init__(self, args: _Paths) -> None:
        super().__init__(args)
        self._base: Counter[Finding] | None = None  # found once in each process

    @property
    @abstractmethod
    def argv(self) -> Sequence[str]:
        """The command, which reports as JSON."""

    @abstractmethod
    def parse(self, output: str) -> Iterator[Finding]:
        """Read its report; `ValueError` for anything else."""

    def describe_command(self) -> str:
        """Write the command of the check in the form that a person would type."""
        return shlex.join(self.argv)

    def system_prompt(self) -> str:
        """Tell a model what it must reduce."""
        return _PROMPT.format(tool=self.argv[0], command=self.describe_command())

    async def begin(self, state: GoalState, workspace: Workspace) -> GoalResult:  # noqa: ARG002 - as the base class has it
        """Count the findings at the commit, if everything named exists."""
        look = SandboxCommand(argv=("sh", "-c", _MISSING, "sh", *self.args.paths))
        if missing := (await workspace.run(look)).stdout.text.split("\n")[0]:
            raise GoalUnreachable(
                f"There is no {missing[:200]} at this commit. Name files or folders that are committed."
            )
        base = await self._find_base(workspace)
        if not base:
            return GoalResult(achieved=True, reason=f"{self.argv[0]} finds nothing.")
        return GoalResult(achieved=False, reason=f"{base.total()} findings at the commit:\n{_format_findings(base)}")

    async def check(self, state: GoalState, deps: GoalDeps) -> GoalResult:
        """Compare the findings in a fresh copy with the changes to those at the commit."""
        base = await self._find_base(deps.workspace)
        changes = self.select_changes(read_stored_changes(state.get("changes", [])))
        try:
            async with deps.workspace.open_fresh(changes) as fresh:
                now = await self._find(fresh)
        except GoalUnreachable as error:  # it can be reached from the commit, but not like this
            return GoalResult(achieved=False, reason=str(error))
        new = now - base
        found = f"{now.total()} findings, {base.total()} at the commit"
        reason = f"New findings ({found}):\n{_format_findings(new)}" if new else f"{found}, none of them new."
        return GoalResult(
            achieved=not new and now.total() < base.total(),
            reason=reason,
            details={"before": base.total(), "after": now.total(), "new": [list(one) for one in new]},
        )

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Leave out changes to the tool's settings."""
        return [one for one in changes if not is_analysis_setting(one.path.decode(errors="replace"))]

    async def _find_base(self, workspace: Workspace) -> Counter[Finding]:
        if self._base is None:
            async with workspace.open_fresh(()) as fresh:
                self._base = await self._find(fresh)
        return self._base

    async def _find(self, workspace: Workspace) -> Counter[Finding]:
        done = await workspace.run(
            SandboxCommand(argv=tuple(self.argv)), shown=self.describe_command(), kept_bytes=_MAX_REPORT
        )
        root = (await workspace.run(SandboxCommand(argv=("pwd", "-P")))).stdout.text.strip()
        try:
            findings = Counter(
                (path.removeprefix(f"{root}/"), rule, message)
                for path, rule, message in self.parse(done.stdout.head.decode(errors="replace"))
            )
        except ValueError as error:
            raise GoalUnreachable(_explain_no_report(self.argv[0], done)) from error
        if done.exit_code not in {0, 1}:
            raise GoalUnreachable(_explain_no_report(self.argv[0], done))
        return findings + await _count_marks(workspace)


class TypesGoal(_FewerFindings[TypesArguments]):
    """mypy or pyright finds fewer errors."""

    name = "types"
    arguments = TypesArguments

    @property
    def argv(self) -> Sequence[str]:
        """The command, which reports as JSON."""
        if self.args.tool == "pyright":
            return ("pyright", "--outputjson", *self.args.paths)
        return ("mypy", "--output", "json", "--cache-dir", "/dev/null", "--", *self.args.paths)

    def parse(self, output: str) -> Iterator[Finding]:
        """Read the lines of mypy, or the one object of pyright."""
        if self.args.tool == "pyright":
            for one in _read_list(json.loads(output), "generalDiagnostics"):
                if one.get("severity") == "error":
                    yield str(one.get("file", "")), str(one.get("rule", "")), str(one.get("message", ""))
            return
        for line in filter(str.strip, output.splitlines()):
            one = _read_object(json.loads(line))
            if one.get("severity") == "error":
                yield str(one.get("file", "")), str(one.get("code", "")), str(one.get("message", ""))


class LintGoal(_FewerFindings[PathArguments]):
    """ruff finds fewer problems."""

    name = "lint"
    arguments = PathArguments

    @property
    def argv(self) -> Sequence[str]:
        """The command, which reports as JSON."""
        return ("ruff", "check", "--output-format", "json", "--no-cache", "--", *self.args.paths)

    def parse(self, output: str) -> Iterator[Finding]:
        """Read ruff's list."""
        for one in _read_list({"all": json.loads(output)}, "all"):
            yield str(one.get("filename", "")), str(one.get("code", "")), str(one.get("message", ""))


async def _count_marks(workspace: Workspace) -> Counter[Finding]:
    """Count the comments that silence an analysis."""
    argv = ("grep", "-rIoE", "--include=*.py", "--include=*.pyi", "--exclude-dir=.git", _MARKS, ".")
    done = await workspace.run(SandboxCommand(argv=argv), kept_bytes=_MAX_REPORT)
    lines = done.stdout.head.decode(errors="replace").splitlines()
    places = (line.removeprefix("./").partition(":") for line in lines)
    return Counter((path, "silenced", f"a comment {mark!r}") for path, _, mark in places)


def _explain_no_report(program: str, done: Execution) -> str:
    if done.exit_code == _NOT_FOUND:
        return (
            f"There is no {program} in the sandbox. Prepare an environment with it, and name its Python as `python` in "
            "the table [sandbox] of citebot.toml."
        )
    said = " ".join((done.stderr.text or done.stdout.text).split())[-300:]
    return f"{program} gave no report that can be read. {done.explain()} It says: {said}"


def _format_findings(findings: Counter[Finding]) -> str:
    lines = [f"{path}: {message} [{rule}]" for path, rule, message in list(findings.elements())[:_MAX_LISTED]]
    more = findings.total() - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _read_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 - as for all that cannot be read
    return value


def _read_list(value: Any, name: str) -> Iterator[dict[str, Any]]:
    entries = _read_object(value).get(name)
    if not isinstance(entries, list):
        raise ValueError("not a list")  # noqa: TRY004 - as above
    return map(_read_object, entries)
