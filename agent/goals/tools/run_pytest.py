"""The tool that runs tests of the working copy and says what failed, test by test."""

from __future__ import annotations

from pydantic import BaseModel, Field, field_validator

from agent.goals.tools.pytest_run import run_pytest
from agent.goals.tools.sandbox_tool import SandboxTool, get_workspace
from agent.ports import Deps
from agent.text.escaping import replace_control_characters
from agent.tools.tool import MAX_CHARACTERS, OUTSIDE, ToolEvidence

MAX_SELECTED = 50


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
