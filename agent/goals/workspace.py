"""The workspace of a goal run: a working copy, the sandbox that its commands run in, and the record of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from agent.ports import Emit, Redactor, Workspace
from agent.sandbox.patch import FileChange
from agent.sandbox.sandbox import Execution, Sandbox, SandboxCommand, SandboxLimits

LONGEST_COMMAND = 2_000  # characters of one that the record keeps


class EditedCopy(Protocol):
    """A folder with the files of a commit, which commands in the sandbox may change."""

    @property
    def path(self) -> Path:
        """Where the files are."""

    async def read_changes(self) -> Sequence[FileChange]:
        """Return what is not as it is at the commit, by path."""

    async def write_changes(self, changes: Sequence[FileChange]) -> None:
        """Make changes to a copy that is fresh."""


class WorkingCopies(Protocol):
    """Makes working copies of one repository."""

    def open(self, commit: str) -> AbstractAsyncContextManager[EditedCopy]:
        """Make a fresh copy of the files of a commit; it is gone at the end."""


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


class SandboxWorkspace:
    """A `Workspace` over a working copy on disk."""

    def __init__(
        self,
        sandbox: Sandbox,
        copies: WorkingCopies,
        copy: EditedCopy,
        record: CommandRecord,
        *,
        commit: str,
        limits: SandboxLimits,
    ) -> None:
        self._sandbox = sandbox
        self._copies = copies
        self._copy = copy
        self._record = record
        self._commit = commit
        self._limits = limits

    async def run(self, command: SandboxCommand, *, shown: str = "", kept_bytes: int = 0) -> Execution:
        """Run a command on the copy."""
        if shown:
            self._record.add(shown)
        limits = replace(self._limits, kept_bytes=kept_bytes) if kept_bytes else self._limits
        return await self._sandbox.run(command, self._copy.path, limits)

    def take_commands(self) -> Sequence[str]:
        """Return the commands that people were shown since this was called last."""
        return self._record.take()

    async def read_changes(self) -> Sequence[FileChange]:
        """Return what is not as it is at the commit, by path."""
        return await self._copy.read_changes()

    @asynccontextmanager
    async def open_fresh(self, changes: Sequence[FileChange] = ()) -> AsyncGenerator[Workspace]:
        """Open another copy of the same commit with some changes made."""
        async with open_workspace(
            self._sandbox, self._copies, self._record, commit=self._commit, limits=self._limits, changes=changes
        ) as fresh:
            yield fresh


@asynccontextmanager
async def open_workspace(
    sandbox: Sandbox,
    copies: WorkingCopies,
    record: CommandRecord,
    *,
    commit: str,
    limits: SandboxLimits,
    changes: Sequence[FileChange] = (),
) -> AsyncGenerator[Workspace]:
    """Make a working copy with the changes that a run has made so far; it is gone at the end."""
    async with copies.open(commit) as copy:
        await copy.write_changes(changes)
        yield SandboxWorkspace(sandbox, copies, copy, record, commit=commit, limits=limits)
