"""What the sandboxes have in common: a box is made for each command, and supervised until it has ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from agent.sandbox.box_folders import BoxFolders, open_folders
from agent.sandbox.environment import PythonEnvironment
from agent.sandbox.memory_group import Membership, MemoryGroup, tighten
from agent.sandbox.sandbox import Channel, Execution, SandboxCommand, SandboxLimits, StartProgram
from agent.sandbox.supervision import BoxLaunch, BoxPipes, supervise


class BoxSandbox(ABC):
    """Runs each command in a box of its own; a mechanism says how such a box is launched."""

    mechanism: ClassVar[str]

    def __init__(self, start: StartProgram, python: PythonEnvironment, group: MemoryGroup | None = None) -> None:
        self._start = start
        self._python = python
        self._group = group

    async def run(
        self,
        command: SandboxCommand,
        working_copy: Path,
        limits: SandboxLimits,
        *,
        say: Callable[[Channel, bytes], None] | None = None,
    ) -> Execution:
        """Run a command; see `Sandbox.run`."""
        limits = tighten(limits, self._group)
        joining = nullcontext(Membership()) if self._group is None else self._group.open(limits)
        async with open_folders(working_copy, command.support) as folders, joining as member:
            pipes = BoxPipes()
            pipes.pass_on(folders.held)
            launch = self._make_launch(command, folders, limits, pipes)
            launch = replace(launch, line=[*member.prefix, *launch.line])
            execution = await supervise(self._start, launch, command, limits, folders, say=say)
            return replace(execution, ending="memory", exit_code=None) if member.is_exceeded() else execution

    @abstractmethod
    def _make_launch(
        self, command: SandboxCommand, folders: BoxFolders, limits: SandboxLimits, pipes: BoxPipes
    ) -> BoxLaunch:
        """Say how the box of a command is started, and what ends it."""
