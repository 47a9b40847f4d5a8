"""The folders that a command may write to, and the user of the machine that it runs as.

A folder with files made by untrusted programs is walked, measured and removed without following
links: every folder is opened below an open one, so no link leads outside, whatever happens
meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import stat
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent.errors import SandboxUnavailable

DEEPEST = 100  # folders within folders; each holds a descriptor while it is walked
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # to open a pipe must not wait for its writer


class TooDeep(Exception):
    """Folders are nested deeper than in any real project."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderEntry:
    """One entry of a folder; it may be opened by its name below `parent` during the walk."""

    path: str  # below the folder that is walked
    name: str
    parent: int
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    def read(self, most: int) -> bytes | None:
        """Return the contents of a file or the target of a link; None for anything else or larger."""
        if stat.S_ISLNK(self.status.st_mode):
            return os.fsencode(os.readlink(self.name, dir_fd=self.parent))
        if not stat.S_ISREG(self.status.st_mode):
            return None
        with _open_below(self.name, self.parent, _PLAIN) as file, os.fdopen(file, "rb", closefd=False) as source:
            data = source.read(most + 1)
        return data if len(data) <= most else None


def unlock_folder(folder: Path) -> None:
    """Give the owner of a folder all rights to it again, as a command may have removed them."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{place}").chmod(mode | stat.S_IRWXU)
    finally:
        os.close(place)


def walk_folder(folder: Path) -> Iterator[FolderEntry]:
    """Yield everything below a folder, each folder before its contents; `TooDeep` if that never ends."""
    unlock_folder(folder)
    top = os.open(folder, _FOLDER)
    try:
        yield from _walk(top, "", 1)
    finally:
        os.close(top)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[FolderEntry]:
    if depth > DEEPEST:
        raise TooDeep
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # removed meanwhile
                path = f"{prefix}{entry.name}"
                found = FolderEntry(path=path, name=entry.name, parent=folder, status=entry.stat(follow_symlinks=False))
                yield found
                if found.is_folder:
                    with _open_below(entry.name, folder, _FOLDER) as inner:
                        yield from _walk(inner, f"{path}/", depth + 1)


@contextmanager
def _open_below(name: str, parent: int, flags: int) -> Iterator[int]:
    """Open a folder or a file, temporarily allowing it to its owner, ourselves, if its mode forbids that."""
    kind = flags & os.O_DIRECTORY
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=parent)
    try:
        mode, wanted = stat.S_IMODE(os.fstat(place).st_mode), 0o500 if kind else 0o400
        lacking = os.geteuid() != 0 and mode & wanted != wanted  # nothing withholds them from root
        if lacking:
            Path(f"/proc/self/fd/{place}").chmod(mode | wanted)
        try:
            opened = os.open(name, flags, dir_fd=parent)
            try:
                yield opened
            finally:
                os.close(opened)
        finally:
            if lacking:
                with suppress(FileNotFoundError):
                    Path(f"/proc/self/fd/{place}").chmod(mode)
    finally:
        os.close(place)


def exceeds(folders: tuple[Path, ...], *, most_bytes: int, most_files: int) -> bool:
    """Whether folders together exceed a limit; stops counting there."""
    taken = files = 0
    try:
        for folder in folders:
            for entry in walk_folder(folder):
                taken += 512 * entry.status.st_blocks
                files += 1
                if taken > most_bytes or files > most_files:
                    return True
    except TooDeep:
        return True
    return False


def remove_folder(folder: Path) -> None:
    """Remove a folder with all contents, however deep; nothing may use it any more.

    Inner folders are first moved to the top, because they may be too deep for a path.
    """
    try:
        unlock_folder(folder)
    except FileNotFoundError:
        return
    top = os.open(folder, _FOLDER)
    try:
        waiting = _clear(top, top)
        while waiting:
            name = waiting.pop()
            inner = os.open(name, _FOLDER, dir_fd=top)
            try:
                waiting += _clear(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _clear(folder: int, top: int) -> list[str]:
    """Delete the files of a folder and move its folders to the top; return their names there."""
    with os.scandir(folder) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    names = []
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:  # it is not empty
            os.chmod(name, 0o700, dir_fd=folder)  # without its rights it can be neither read nor moved
            names.append(secrets.token_hex(16))
            os.rename(name, names[-1], src_dir_fd=folder, dst_dir_fd=top)
    return names


# The user of commands if citebot is root: a number given to neither people nor services.
HANDED_OVER_TO = 61_000
# Where the working copies of a citebot that is root lie: that user could not get to them in root's own folders.
_OF_ROOT = Path("/var/lib/citebot-sandbox")
_BOX, _HELD = "box-", "held"  # the folder of a box, and the pipe in it
_LOOKING = 0.05  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxFolders:
    """The folders that a command may write, all on disk, and `support`, which it may only read.

    `held` is the end of a pipe that stays open as long as anything of the box exists.
    """

    working_copy: Path
    home: Path
    tmp: Path
    shared_memory: Path
    support: Path
    held: int

    @property
    def writable(self) -> tuple[Path, ...]:
        """Return all folders that count towards the limits."""
        return (self.working_copy, self.home, self.tmp, self.shared_memory)


def find_user() -> int | None:
    """Return the user that runs commands; None if that is citebot's own."""
    return HANDED_OVER_TO if os.geteuid() == 0 else None


def choose_folder(home: Path) -> Path:
    """Return the folder of the working copies, given the data folder; raises `SandboxUnavailable`."""
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
    """Create the folders of one command beside its working copy, and finally remove them with all contents."""
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
    os.mkfifo(root / _HELD, 0o600)  # by its reading end others can tell that somebody has it
    held = os.open(root / _HELD, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return BoxFolders(working_copy=working_copy, held=held, **folders)


def wait_for_boxes(folder: Path, seconds: float) -> bool:
    """Wait until the boxes of dead citebots have ended; `folder` holds their working copy.

    Such a box ends by itself after a while. Returns whether it has.
    """
    deadline = time.monotonic() + seconds
    for pipe in folder.glob(f"{_BOX}*/{_HELD}"):
        while _is_held(pipe):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOKING)
    return True


def _is_held(pipe: Path) -> bool:
    """Whether anybody holds the reading end of a named pipe."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in {errno.ENXIO, errno.ENOENT}:
            return False
        raise
    return True


def make_passable(folder: Path) -> None:
    """Let the commands' user, if it is another one, pass a folder without listing it."""
    if find_user() is not None:
        folder.chmod(0o711)


def give_away(path: Path) -> None:
    """Give a file or a link to the commands' user."""
    if (user := find_user()) is not None:
        os.chown(path, user, user, follow_symlinks=False)
