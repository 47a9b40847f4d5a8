"""What the tools of a goal run have in common: they run in the sandbox, with the approval of the run."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from agent.errors import AgentError
from agent.ports import Deps, Workspace
from agent.sandbox.sandbox import BoundedOutput, Execution
from agent.text.escaping import replace_control_characters
from agent.tools.tool import MAX_CHARACTERS, Tool

Arguments = TypeVar("Arguments", bound=BaseModel)

_ENDINGS = {
    "timeout": "It took too long and was ended. A command cannot wait for input here: there is none.",
    "output": "It wrote too much and was ended.",
    "memory": "It took too much memory and was ended.",
    "files": "It left too many or too large files and was ended.",
    "killed": "It was killed from outside.",
}


class SandboxTool(Tool[Arguments]):
    """A tool that there is in goal runs alone; whoever approves the run approves it."""

    needs_approval = True
    seconds = 600.0  # the sandbox has a limit of its own, which comes first
    source = "sandbox"

    def is_available(self, deps: Deps) -> bool:
        """Whether there is a working copy."""
        return deps.workspace is not None


def get_workspace(deps: Deps) -> Workspace:
    """Return the workspace of a goal run; a tool without one is never called."""
    if deps.workspace is None:
        raise AssertionError("a tool of the sandbox is called where there is none")
    return deps.workspace


class CommandFailed(AgentError):
    """A command of a tool has failed; the text says how."""


def explain_ending(execution: Execution) -> str:
    """Say how a command ended."""
    return _ENDINGS.get(execution.ending, f"It ended with exit code {execution.exit_code}.")


def fit_output(output: BoundedOutput, deps: Deps, *, most: int = MAX_CHARACTERS) -> str:
    """Return an output as a model may read it: masked, bounded from both ends."""
    text = replace_control_characters(deps.redact(output.text)).strip("\n")
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"
