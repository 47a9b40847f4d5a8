"""The goals that a command succeeds, and that a selection of unchanged tests passes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePosixPath

from pydantic import BaseModel, Field

from agent.errors import GoalUnreachable
from agent.goals.goal import (
    Goal,
    GoalDeps,
    GoalResult,
    GoalState,
    describe_left_out,
    is_pytest_setting,
    read_stored_changes,
)
from agent.goals.pytest_run import (
    NO_PYTHON,
    NO_TESTS,
    NOT_INSTALLED,
    USAGE,
    PytestRun,
    format_pytest_command,
    run_pytest,
)
from agent.goals.sandbox_tools import SelectionArguments
from agent.goals.workspace import Workspace
from agent.sandbox.patch import FileChange
from agent.sandbox.sandbox import Execution, SandboxCommand

_MAX_OUTPUT = 4_000
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_COMMAND_PROMPT = """
The goal: this command ends with exit code 0 in the root of the repository: {command}

It is run in a fresh copy with your changes, without input. Files that it names are taken as they stand at the commit.
"""


class CommandArguments(BaseModel):
    """A command as a list of words, without a shell."""

    argv: list[str] = Field(min_length=1, max_length=50)


class CommandGoal(Goal[CommandArguments]):
    """A command ends with exit code 0."""

    name = "command"
    arguments = CommandArguments

    def describe_command(self) -> str:
        """Write the command in the form that a person would type."""
        return shlex.join(self.args.argv)

    def system_prompt(self) -> str:
        """Tell a model which command has to succeed."""
        return _COMMAND_PROMPT.format(command=self.describe_command())

    async def begin(self, state: GoalState, workspace: Workspace) -> GoalResult:  # noqa: ARG002 - as the base class has it
        """Run the command at the commit."""
        async with workspace.open_fresh(()) as fresh:
            done = await self._run(fresh)
        if done.exit_code in {_NOT_EXECUTABLE, _NOT_FOUND}:
            raise GoalUnreachable(
                f"`{self.args.argv[0][:80]}` is no program that the sandbox has. Name one of the repository or of the "
                "environment that `python` in the table [sandbox] of citebot.toml names."
            )
        return _make_result(done)

    async def check(self, state: GoalState, deps: GoalDeps) -> GoalResult:
        """Run the command in a fresh copy with the changes."""
        changes = read_stored_changes(state.get("changes", []))
        counted = self.select_changes(changes)
        async with deps.workspace.open_fresh(counted) as fresh:
            done = await self._run(fresh)
        return _make_result(done, describe_left_out(changes, counted))

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Drop changes to the files that the command names, and to settings of Python and its tests."""
        named = {word.removeprefix("./").encode() for word in self.args.argv}
        return [
            one for one in changes if one.path not in named and not is_pytest_setting(one.path.decode(errors="replace"))
        ]

    async def _run(self, workspace: Workspace) -> Execution:
        return await workspace.run(SandboxCommand(argv=tuple(self.args.argv)), shown=self.describe_command())


def _make_result(done: Execution, note: str = "") -> GoalResult:
    details = {"exit_code": done.exit_code}
    output = "\n".join(filter(None, (done.stdout.text.strip(), done.stderr.text.strip())))[-_MAX_OUTPUT:]
    ended = "The command ended with exit code 0." if done.exit_code == 0 else done.explain()
    return GoalResult(achieved=done.exit_code == 0, reason=f"{ended}{note}\n\n{output}".strip(), details=details)


_TESTS_PROMPT = """
The goal: these tests pass: {select}

They are run as they stand at the commit, in a fresh copy: what you change in them, in a conftest.py or in the \
settings of pytest is left out. Mend the code that they test.
"""


class PytestGoal(Goal[SelectionArguments]):
    """Selected tests pass unchanged."""

    name = "pytest"
    arguments = SelectionArguments

    def describe_command(self) -> str:
        """Write the command of the check in the form that a person would type."""
        return format_pytest_command(self.args.select)

    def system_prompt(self) -> str:
        """Tell a model which tests have to pass."""
        return _TESTS_PROMPT.format(select=", ".join(self.args.select))

    async def begin(self, state: GoalState, workspace: Workspace) -> GoalResult:
        """Run the tests at the commit, before anything is changed."""
        async with workspace.open_fresh(()) as fresh:
            run = await run_pytest(fresh, self.args.select)
        self._require_reachable(state, run)
        return _judge_run(run)

    def _require_reachable(self, state: GoalState, run: PytestRun) -> None:
        selection = ", ".join(self.args.select)
        if run.exit_code in {NOT_INSTALLED, NO_PYTHON}:
            raise GoalUnreachable(run.explain())
        if run.exit_code == NO_TESTS:
            raise GoalUnreachable(f"{selection} selects no tests at this commit. Name files or tests that are there.")
        if run.exit_code == USAGE:
            said = " ".join(run.output.rpartition("ERROR:")[2].split())[:300].replace("/work/", "")
            raise GoalUnreachable(
                f"pytest does not take {selection} at this commit. Name files or tests that are committed. It says: "
                f"{said}"
            )
        for name, is_ours in run.missing.items():
            if not is_ours and not run.passed and name.partition(".")[0] not in state.get("task", ""):
                raise GoalUnreachable(
                    f"The tests cannot run: `import {name}` fails in the sandbox. Prepare an environment that has it, "
                    "and name its Python as `python` in the table [sandbox] of citebot.toml. If the module is still to "
                    "be written, name it in what you want."
                )

    async def check(self, state: GoalState, deps: GoalDeps) -> GoalResult:
        """Run the tests in a fresh copy, with all changes except those to tests and their settings."""
        changes = read_stored_changes(state.get("changes", []))
        counted = self.select_changes(changes)
        async with deps.workspace.open_fresh(counted) as fresh:
            run = await run_pytest(fresh, self.args.select)
        left_out = [one.path.decode(errors="replace") for one in changes if one not in counted]
        return _judge_run(run, describe_left_out(changes, counted), left_out)

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Drop changes to the selected tests, their shared files, and pytest's settings."""
        return [one for one in changes if not self._is_pinned(one.path.decode(errors="replace"))]

    def _is_pinned(self, path: str) -> bool:
        places = [PurePosixPath(one.partition("::")[0]) for one in self.args.select]
        is_selected = any(PurePosixPath(path) == place for place in places)
        is_test_below = PurePosixPath(path).name.startswith("test_") or path.endswith("_test.py")
        below = is_test_below and any(place in PurePosixPath(path).parents for place in places)
        return is_selected or below or is_pytest_setting(path)


def _judge_run(run: PytestRun, note: str = "", left_out: Sequence[str] = ()) -> GoalResult:
    failures = f"\n\n{run.format_failures()}" if run.failures else ""
    return GoalResult(
        achieved=run.is_green,
        reason=run.explain() + note + failures,
        details={
            "passed": list(run.passed),
            "failures": [asdict(one) for one in run.failures],
            "left_out": [*left_out],
        },
    )
