"""The tools of a goal run: those of the sandbox, beside all that read the repository."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.goals.tools.copy_files import FileList, FileRead, FileWrite
from agent.goals.tools.run_pytest import RunPytest
from agent.goals.tools.shell import BashExec
from agent.tools.files import ListDirectory, ReadFile
from agent.tools.registry import ToolRegistry, make_tool_registry
from agent.tools.tool import Tool

SANDBOX_TOOLS = (BashExec.name, FileRead.name, FileList.name, FileWrite.name, RunPytest.name)


def make_goal_tools() -> ToolRegistry:
    """Return a registry with everything that a model may call in a goal run; files are read from the copy alone."""
    return make_tool_registry(_make_sandbox_tools(), without=(ReadFile.name, ListDirectory.name))


def make_copy_tools() -> ToolRegistry:
    """Return a registry with the tools of the sandbox alone, for a run whose commit is no longer the indexed one."""
    return ToolRegistry(_make_sandbox_tools())


def _make_sandbox_tools() -> Sequence[Tool[Any]]:
    return (BashExec(), FileRead(), FileList(), FileWrite(), RunPytest())
