"""The goal that a selection of tests passes, as they stand at the commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from agent.errors import GoalUnreachable
from agent.goals.goal import Goal, GoalResult, describe_left_out, is_pytest_setting
from agent.goals.goal_state import GoalState, read_stored_changes
from agent.goals.pytest_run import NO_PYTHON, NO_TESTS, NOT_INSTALLED, USAGE, PytestRun, format_pytest_command
from agent.goals.pytest_run import run_pytest as run_selection
from agent.goals.sandbox_tools import SelectionArguments
from agent.goals.workspace import Workspace
from agent.sandbox.patch import FileChange

_PROMPT = """
The goal: these tests pass: {select}

They are run as they stand at the commit, in a fresh copy: what you change in them, in a conftest.py or in the \
settings of pytest is left out. Mend the code that they test.
"""


class PytestGoal(Goal[SelectionArguments]):
    """Tests pass that nobody has changed."""

    name = "pytest"
    arguments = SelectionArguments

    def describe_command(self) -> str:
        """Write the command of the check as a person would type it."""
        return format_pytest_command(self.args.select)

    def system_prompt(self) -> str:
        """Tell a model which tests are to pass."""
        return _PROMPT.format(select=", ".join(self.args.select))

    async def begin(self, state: GoalState, workspace: Workspace) -> GoalResult:
        """Run the tests at the commit, before anything is changed."""
        async with workspace.open_fresh(()) as fresh:
            run = await run_selection(fresh, self.args.select)
        self._require_reachable(state, run)
        return _make_result(run)

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

    async def check(self, state: GoalState, workspace: Workspace) -> GoalResult:
        """Run the tests in a fresh copy, with the changes that are no tests and no settings of tests."""
        changes = read_stored_changes(state.get("changes", []))
        counted = self.select_changes(changes)
        async with workspace.open_fresh(counted) as fresh:
            run = await run_selection(fresh, self.args.select)
        left_out = [one.path.decode(errors="replace") for one in changes if one not in counted]
        return _make_result(run, describe_left_out(changes, counted), left_out)

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Leave out changes of the selected tests, of what they share, and of the settings of pytest."""
        return [one for one in changes if not self._is_pinned(one.path.decode(errors="replace"))]

    def _is_pinned(self, path: str) -> bool:
        places = [PurePosixPath(one.partition("::")[0]) for one in self.args.select]
        is_selected = any(PurePosixPath(path) == place for place in places)
        is_test_below = PurePosixPath(path).name.startswith("test_") or path.endswith("_test.py")
        below = is_test_below and any(place in PurePosixPath(path).parents for place in places)
        return is_selected or below or is_pytest_setting(path)


def _make_result(run: PytestRun, note: str = "", left_out: Sequence[str] = ()) -> GoalResult:
    failures = f"\n\n{run.format_failures()}" if run.failures else ""
    return GoalResult(
        achieved=run.is_green,
        reason=run.explain() + note + failures,
        details={
            "passed": list(run.passed),
            "failures": [one.to_record() for one in run.failures],
            "left_out": [*left_out],
        },
    )
