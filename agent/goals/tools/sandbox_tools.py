"""Tools of a goal run that work in its sandbox, with the approval of the run: a shell, and tests."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, Field, field_validator

from agent.errors import AgentError
from agent.goals.goal import GoalDeps
from agent.goals.tools.pytest_run import run_pytest
from agent.goals.workspace import Workspace
from agent.lookups.tool import MAX_CHARACTERS, OUTSIDE, Tool, ToolEvidence
from agent.ports import Deps
from agent.sandbox.sandbox import BoundedOutput, SandboxCommand
from agent.text.escaping import replace_control_characters

Arguments = TypeVar("Arguments", bound=BaseModel)

_LONGEST_OUTPUT = 5_000  # characters of each of the two
MAX_SELECTED = 50


class SandboxTool(Tool[Arguments]):
    """A tool that there is in goal runs alone; whoever approves the run approves it."""

    needs_approval = True
    seconds = 600.0  # the sandbox has a limit of its own, which comes first
    source = "sandbox"

    def is_available(self, deps: Deps) -> bool:
        """Whether there is a working copy."""
        return isinstance(deps, GoalDeps)


def get_workspace(deps: Deps) -> Workspace:
    """Return the workspace of a goal run; a tool without one is never called."""
    if not isinstance(deps, GoalDeps):
        raise TypeError("a tool of the sandbox is called where there is none")
    return deps.workspace


class CommandFailed(AgentError):
    """A command of a tool has failed; the text says how."""


def fit_output(output: BoundedOutput, deps: Deps, *, most: int = MAX_CHARACTERS) -> str:
    """Return an output as a model may read it: masked, bounded from both ends."""
    text = replace_control_characters(deps.redact(output.text)).strip("\n")
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


class BashArguments(BaseModel):
    """A command."""

    command: str = Field(min_length=1, max_length=8_000, description="For bash, in the root of the repository.")
    seconds: int = Field(default=60, ge=1, le=300, description="How long it may take.")


class BashExec(SandboxTool[BashArguments]):
    """Runs a command of the shell."""

    name = "bash_exec"
    description = "Run a shell command in the root of the working copy: no network, no input, bounded output."
    arguments = BashArguments
    label = "Running"
    argument_shown = "command"
    cost = OUTSIDE

    async def run(self, args: BashArguments, deps: Deps) -> ToolEvidence:
        """Run the command, and return its end and what it wrote."""
        line = ("timeout", "-s", "KILL", str(args.seconds), "bash", "-c", args.command)
        done = await get_workspace(deps).run(SandboxCommand(argv=line), shown=args.command)
        ended = done.explain()
        if done.exit_code == 137:  # 128 and KILL
            ended = f"It was killed after {done.seconds:.0f} seconds."
        written = (
            fit_output(done.stdout, deps, most=_LONGEST_OUTPUT),
            fit_output(done.stderr, deps, most=_LONGEST_OUTPUT),
        )
        parts = [f"{name}:\n{text}" for name, text in zip(("Output", "Errors"), written, strict=True) if text]
        return ToolEvidence(text="\n\n".join([ended, *(parts or ["It wrote nothing."])]))


def check_selection(select: list[str]) -> list[str]:
    """Return tests as pytest takes them; raises `ValueError` for what would be an option, or empty."""
    for one in select:
        if not one.strip() or one.startswith(("-", "@", "/")) or ".." in one.partition("::")[0].split("/"):
            raise ValueError(f"{one[:80]!r} selects no tests. Name a file, a folder or a test of the repository.")
    return select


class SelectionArguments(BaseModel):
    """Tests."""

    select: list[str] = Field(
        min_length=1, max_length=MAX_SELECTED, description="Files, folders or tests such as tests/test_a.py::test_b."
    )

    @field_validator("select")
    @classmethod
    def _check(cls, select: list[str]) -> list[str]:
        return check_selection(select)


class RunPytest(SandboxTool[SelectionArguments]):
    """Runs tests of the working copy as it is now."""

    name = "run_pytest"
    description = "Run tests of the working copy as it is now: each failure with its place, message and output."
    arguments = SelectionArguments
    label = "Running tests"
    argument_shown = "select"
    cost = OUTSIDE

    async def run(self, args: SelectionArguments, deps: Deps) -> ToolEvidence:
        """Run the tests."""
        run = await run_pytest(get_workspace(deps), args.select)
        details = run.format_failures() or ("" if run.is_green else run.output[-2_000:])
        text = replace_control_characters(deps.redact(f"{run.explain()}\n\n{details}".strip()))
        return ToolEvidence(text=text[:MAX_CHARACTERS])
