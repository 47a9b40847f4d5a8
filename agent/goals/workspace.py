"""The workspace of a goal run: a working copy, the sandbox that its commands run in, and the record of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from agent.ports import Emit, Redactor
from agent.sandbox.patch import FileChange
from agent.sandbox.sandbox import Execution, Sandbox, SandboxCommand, SandboxLimits
from agent.sandbox.working_copy import WorkingCopy

LONGEST_COMMAND = 2_000  # characters of one that the record keeps

OpenCopy = Callable[[], AbstractAsyncContextManager[WorkingCopy]]


class CommandRecord:
    """What was run in one process for one run, as people are shown it."""

    def __init__(self, emit: Emit, redact: Redactor) -> None:
        self._emit = emit
        self._redact = redact
        self._lines: list[str] = []

    def add(self, shown: str) -> None:
        """Show a command that is about to run, and remember it."""
        line = self._redact(shown)[:LONGEST_COMMAND]
        self._lines.append(line)
        self._emit("command", line=line)

    def take(self) -> Sequence[str]:
        """Return what was added since this was called last."""
        lines, self._lines = self._lines, []
        return lines


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """A copy of the files of one commit that may be changed, and the sandbox in which commands run on it.

    `open_fresh` opens another copy of the same commit with some changes made; it is gone at the end. `record` has the
    commands that people were shown, those of fresh copies among them.
    """

    sandbox: Sandbox
    copy: WorkingCopy
    record: CommandRecord
    limits: SandboxLimits
    open_fresh: Callable[[Sequence[FileChange]], AbstractAsyncContextManager[Workspace]]

    async def run(self, command: SandboxCommand, *, shown: str = "", kept_bytes: int = 0) -> Execution:
        """Run a command on the copy; `shown` is how people read it while it runs, empty for what is no news to them.

        `kept_bytes` of each output come back, by default as many as the sandbox keeps. Raises `SandboxUnavailable`.
        """
        if shown:
            self.record.add(shown)
        limits = replace(self.limits, kept_bytes=kept_bytes) if kept_bytes else self.limits
        return await self.sandbox.run(command, self.copy.tree, limits)


@asynccontextmanager
async def open_workspace(
    sandbox: Sandbox,
    open_copy: OpenCopy,
    record: CommandRecord,
    limits: SandboxLimits,
    changes: Sequence[FileChange] = (),
) -> AsyncGenerator[Workspace]:
    """Open a fresh working copy with the changes that a run has made so far; it is gone at the end."""
    async with open_copy() as copy:
        await asyncio.to_thread(copy.write_changes, changes)
        open_fresh = partial(open_workspace, sandbox, open_copy, record, limits)
        yield Workspace(sandbox=sandbox, copy=copy, record=record, limits=limits, open_fresh=open_fresh)
