"""The tool that runs a shell command in the sandbox."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agent.goals.tools.sandbox_tool import SandboxTool, explain_ending, fit_output, get_workspace
from agent.ports import Deps
from agent.sandbox.sandbox import SandboxCommand
from agent.tools.tool import OUTSIDE, ToolEvidence

_LONGEST_OUTPUT = 5_000  # characters of each of the two


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
        ended = explain_ending(done)
        if done.exit_code == 137:  # 128 and KILL
            ended = f"It was killed after {done.seconds:.0f} seconds."
        written = (
            fit_output(done.stdout, deps, most=_LONGEST_OUTPUT),
            fit_output(done.stderr, deps, most=_LONGEST_OUTPUT),
        )
        parts = [f"{name}:\n{text}" for name, text in zip(("Output", "Errors"), written, strict=True) if text]
        return ToolEvidence(text="\n\n".join([ended, *(parts or ["It wrote nothing."])]))
