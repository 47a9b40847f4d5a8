"""Working copies on disk: one is there while its run holds it, and swept by the next run where that has died."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from agent.errors import WorkingCopyError
from agent.sandbox.box_folders import choose_folder, make_passable, wait_for_boxes
from agent.sandbox.untrusted_folder import remove_folder
from agent.sandbox.working_copy import CommitObjects, WorkingCopy

_PREFIX = "copy-"
_PATIENCE = 30.0  # seconds in which the command of a citebot that has died ends

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_copy(objects: CommitObjects, home: Path, commit: str) -> AsyncGenerator[WorkingCopy]:
    """Make a fresh copy of the files of a commit below the data folder; it is gone at the end."""
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
    """A new folder that is locked for as long as this process has it."""

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
        """Remove the folder with everything in it."""
        try:
            remove_folder(self.folder)
        except OSError as error:  # what is left is swept by the next run
            log.warning("a working copy was not removed: %s", error)
        finally:
            os.close(self._lock)


def sweep_copies(place: Path) -> None:
    """Remove the copies that no process holds any more, once the commands that were at work in them have ended.

    A run that was killed thus never has two of its commands alive. Raises `WorkingCopyError` where one does not end.
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
