"""The workspace of a goal run: a working copy on disk, the sandbox of its commands, and their record.

A copy exists while its run holds it; the next run sweeps copies of dead runs.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent.errors import WorkingCopyError
from agent.ports import Emit
from agent.sandbox.box_folders import choose_folder, make_passable, remove_folder, wait_for_boxes
from agent.sandbox.patch import FileChange
from agent.sandbox.sandbox import Execution, Sandbox, SandboxCommand, SandboxLimits
from agent.sandbox.working_copy import CommitObjects, WorkingCopy

_PREFIX = "copy-"
_PATIENCE = 30.0  # seconds in which the command of a citebot that has died ends

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_copy(objects: CommitObjects, home: Path, commit: str) -> AsyncGenerator[WorkingCopy]:
    """Make a temporary copy of the files of a commit below the data folder."""
    place = await asyncio.to_thread(choose_folder, home)
    await asyncio.to_thread(sweep_copies, place)
    held = await asyncio.to_thread(_HeldFolder, place)
    try:
        copy = WorkingCopy(held.folder / "copy", objects, commit)
        await asyncio.to_thread(copy.write)
        yield copy
    finally:
        # To its end, whatever happens to the caller: a folder that is half removed would be swept later only.
        await asyncio.shield(asyncio.to_thread(held.remove))


class _HeldFolder:
    """A new folder, locked while this process has it."""

    def __init__(self, place: Path) -> None:
        self.folder = place / f"{_PREFIX}{secrets.token_hex(8)}"
        try:
            self.folder.mkdir(mode=0o700)
            make_passable(self.folder)
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            raise WorkingCopyError(f"No working copy can be made in {place}: {error.strerror}.") from error

    def remove(self) -> None:
        """Remove the folder with all contents."""
        try:
            remove_folder(self.folder)
        except OSError as error:  # the next run sweeps leftovers
            log.warning("a working copy was not removed: %s", error)
        finally:
            os.close(self._lock)


def sweep_copies(place: Path) -> None:
    """Remove the copies that no process holds any more, once their commands have ended.

    A killed run thus never has two of its commands alive. Raises `WorkingCopyError` if one does not
    end.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another one sweeps, or it is gone
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not wait_for_boxes(folder, _PATIENCE):
                    raise WorkingCopyError(
                        f"A command of a run that was killed is still at work in {folder}. Try again in a minute."
                    )
                remove_folder(folder)
            finally:
                os.close(descriptor)


LONGEST_COMMAND = 2_000  # characters of one that the record keeps


class CommandRecord:
    """One command of a run, as displayed."""

    def __init__(self, emit: Emit, redact: Callable[[str], str]) -> None:
        self._emit = emit
        self._redact = redact
        self._lines: list[str] = []

    def add(self, shown: str) -> None:
        """Show a command before it runs, and remember it."""
        line = self._redact(shown)[:LONGEST_COMMAND]
        self._lines.append(line)
        self._emit("command", line=line)

    def take(self) -> Sequence[str]:
        """Return the additions since the last call."""
        lines, self._lines = self._lines, []
        return lines


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """A modifiable copy of the files of one commit, and the sandbox in which commands run on it.

    `open_fresh` opens a temporary copy of the same commit with some changes made. `record` has the
    commands shown to people, including those of fresh copies.
    """

    sandbox: Sandbox
    copy: WorkingCopy
    record: CommandRecord
    limits: SandboxLimits
    open_fresh: Callable[[Sequence[FileChange]], AbstractAsyncContextManager[Workspace]]

    async def run(self, command: SandboxCommand, *, shown: str = "", kept_bytes: int = 0) -> Execution:
        """Run a command on the copy; `shown` is its display form while it runs, empty to hide it.

        Returns `kept_bytes` of each output, by default as many as the sandbox keeps. Raises
        `SandboxUnavailable`.
        """
        if shown:
            self.record.add(shown)
        limits = replace(self.limits, kept_bytes=kept_bytes) if kept_bytes else self.limits
        return await self.sandbox.run(command, self.copy.tree, limits)


@asynccontextmanager
async def open_workspace(
    sandbox: Sandbox,
    open_copy: Callable[[], AbstractAsyncContextManager[WorkingCopy]],
    record: CommandRecord,
    limits: SandboxLimits,
    changes: Sequence[FileChange] = (),
) -> AsyncGenerator[Workspace]:
    """Open a temporary working copy with the run's changes so far."""
    async with open_copy() as copy:
        await asyncio.to_thread(copy.write_changes, changes)
        open_fresh = partial(open_workspace, sandbox, open_copy, record, limits)
        yield Workspace(sandbox=sandbox, copy=copy, record=record, limits=limits, open_fresh=open_fresh)
