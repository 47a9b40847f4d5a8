"""The folders that a command may write to, and the user of the machine that it runs as."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.errors import SandboxUnavailable
from agent.sandbox.untrusted_folder import remove_folder, unlock_folder

# Who runs commands where citebot is root: a number that neither people nor services are given.
HANDED_OVER_TO = 61_000
# Where the working copies of a citebot that is root lie: that user could not get to them in root's own folders.
_OF_ROOT = Path("/var/lib/citebot-sandbox")
_BOX, _HELD = "box-", "held"  # the folder of a box, and the pipe in it
_LOOKING = 0.05  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxFolders:
    """Where a command may write, all of it on disk, and `support`, which it may only read.

    `held` is the end of a pipe that tells others of the box, as long as there is anything of it.
    """

    working_copy: Path
    home: Path
    tmp: Path
    shared_memory: Path
    support: Path
    held: int

    @property
    def writable(self) -> tuple[Path, ...]:
        """All that count towards the limits."""
        return (self.working_copy, self.home, self.tmp, self.shared_memory)


def find_user() -> int | None:
    """Return the user to hand commands over to; None where they run as whoever runs citebot."""
    return HANDED_OVER_TO if os.geteuid() == 0 else None


def choose_folder(home: Path) -> Path:
    """Return where the working copies lie, given the data folder; raises `SandboxUnavailable` where that cannot be."""
    folder = home / "sandbox" if find_user() is None else _OF_ROOT
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_passable(folder)
    except OSError as error:
        raise SandboxUnavailable(
            f"The folder {folder} of the sandbox cannot be made ({error.strerror}). Let citebot write there."
        ) from error
    return folder


@asynccontextmanager
async def open_folders(working_copy: Path, support: Mapping[str, bytes]) -> AsyncGenerator[BoxFolders]:
    """Make the folders of one command beside its working copy, and remove them with all that it left in them."""
    root = await asyncio.to_thread(_make_root, working_copy.parent)
    making = asyncio.create_task(asyncio.to_thread(_make_folders, root, working_copy, support))
    try:
        yield await asyncio.shield(making)
    finally:
        await asyncio.wait({making})  # its thread continues where the caller is cancelled
        if making.exception() is None:
            os.close(making.result().held)
        await asyncio.shield(asyncio.to_thread(remove_folder, root))


def _make_root(place: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_BOX, dir=place))
    except OSError as error:
        raise SandboxUnavailable(
            f"The folders of a command cannot be made in {place} ({error.strerror}). Make room there, and try again."
        ) from error


def _make_folders(root: Path, working_copy: Path, support: Mapping[str, bytes]) -> BoxFolders:
    make_passable(root)
    unlock_folder(working_copy)  # an earlier command may have shut it
    folders = {name: root / name for name in ("home", "tmp", "shared_memory", "support")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
        give_away(folder)
    for name, content in support.items():
        target = folders["support"] / name
        target.write_bytes(content)
        give_away(target)
    return BoxFolders(working_copy=working_copy, held=_hold(root / _HELD), **folders)


def _hold(pipe: Path) -> int:
    """Make a named pipe and return its reading end, by which others can tell that somebody has it."""
    os.mkfifo(pipe, 0o600)
    return os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def wait_for_boxes(folder: Path, seconds: float) -> bool:
    """Wait until nothing is left of the boxes whose citebot has died; `folder` holds their working copy.

    Such a box ends by itself, though not at once. Returns whether it has.
    """
    deadline = time.monotonic() + seconds
    for pipe in folder.glob(f"{_BOX}*/{_HELD}"):
        while _is_held(pipe):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOKING)
    return True


def _is_held(pipe: Path) -> bool:
    """Whether anybody has the reading end of a named pipe: without one, there is nothing to write to."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in {errno.ENXIO, errno.ENOENT}:
            return False
        raise
    return True


def make_passable(folder: Path) -> None:
    """Let the user that commands run as pass a folder, if it is another one, and not list it."""
    if find_user() is not None:
        folder.chmod(0o711)


def give_away(path: Path) -> None:
    """Let a file or a link belong to the user that commands run as."""
    if (user := find_user()) is not None:
        os.chown(path, user, user, follow_symlinks=False)
