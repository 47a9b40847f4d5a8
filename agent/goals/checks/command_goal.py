"""The goal that a command succeeds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.errors import GoalUnreachable
from agent.goals.goal import Goal, GoalResult, describe_left_out, is_pytest_setting
from agent.goals.goal_state import GoalState, read_stored_changes
from agent.goals.workspace import Workspace
from agent.sandbox.patch import FileChange
from agent.sandbox.sandbox import Execution, SandboxCommand

_LONGEST_OUTPUT = 4_000
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_PROMPT = """
The goal: this command ends with exit code 0 in the root of the repository: {command}

It is run in a fresh copy with your changes, without input. Files that it names are taken as they stand at the commit.
"""


class CommandArguments(BaseModel):
    """A command, as a list of words: no shell reads it."""

    argv: list[str] = Field(min_length=1, max_length=50)


class CommandGoal(Goal[CommandArguments]):
    """A command ends with exit code 0."""

    name = "command"
    arguments = CommandArguments

    def describe_command(self) -> str:
        """Write the command as a person would type it."""
        return shlex.join(self.args.argv)

    def system_prompt(self) -> str:
        """Tell a model which command is to succeed."""
        return _PROMPT.format(command=self.describe_command())

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

    async def check(self, state: GoalState, workspace: Workspace) -> GoalResult:
        """Run the command in a fresh copy with the changes."""
        changes = read_stored_changes(state.get("changes", []))
        counted = self.select_changes(changes)
        async with workspace.open_fresh(counted) as fresh:
            done = await self._run(fresh)
        return _make_result(done, describe_left_out(changes, counted))

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Leave out changes of files that the command names, and of what steers Python and its tests."""
        named = {word.removeprefix("./").encode() for word in self.args.argv}
        return [
            one for one in changes if one.path not in named and not is_pytest_setting(one.path.decode(errors="replace"))
        ]

    async def _run(self, workspace: Workspace) -> Execution:
        return await workspace.run(SandboxCommand(argv=tuple(self.args.argv)), shown=self.describe_command())


def _make_result(done: Execution, note: str = "") -> GoalResult:
    details = {"exit_code": done.exit_code}
    return GoalResult(achieved=done.exit_code == 0, reason=_explain(done, note), details=details)


def _explain(done: Execution, note: str = "") -> str:
    output = "\n".join(filter(None, (done.stdout.text.strip(), done.stderr.text.strip())))[-_LONGEST_OUTPUT:]
    ended = "The command ended with exit code 0." if done.exit_code == 0 else done.explain()
    return f"{ended}{note}\n\n{output}".strip()
