"""Walks, measures and removes a folder in which programs that nobody trusts have made files.

Nothing is followed: every folder is opened below one that is open already, so no link can lead outside, whatever
happens meanwhile.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 100  # folders within folders; each holds a descriptor while it is walked
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # to open a pipe must not wait for its writer


class TooDeep(Exception):
    """Folders lie deeper within folders than any project has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderEntry:
    """One thing in a folder; it may be opened by its name below `parent`, while the walk is there."""

    path: str  # below the folder that is walked
    name: str
    parent: int
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    def read(self, most: int) -> bytes | None:
        """Return what a file holds, or where a link leads; None for what is neither, or larger."""
        if stat.S_ISLNK(self.status.st_mode):
            return os.fsencode(os.readlink(self.name, dir_fd=self.parent))
        if not stat.S_ISREG(self.status.st_mode):
            return None
        with _open_file(self.name, self.parent) as file, os.fdopen(file, "rb", closefd=False) as source:
            data = source.read(most + 1)
        return data if len(data) <= most else None


def unlock_folder(folder: Path) -> None:
    """Give the owner of a folder all rights to it again, as a command that may write there may have taken them."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{place}").chmod(mode | stat.S_IRWXU)
    finally:
        os.close(place)


def walk_folder(folder: Path) -> Iterator[FolderEntry]:
    """Yield everything below a folder, each folder before what it holds; `TooDeep` where that never ends."""
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
                    with _open_folder(entry.name, folder) as inner:
                        yield from _walk(inner, f"{path}/", depth + 1)


@contextmanager
def _open_folder(name: str, parent: int) -> Iterator[int]:
    """Open a folder; one that forbids it is opened to its owner, ourselves, for as long as that takes."""
    with _allow(name, parent, os.O_DIRECTORY, 0o500):
        folder = os.open(name, _FOLDER, dir_fd=parent)
        try:
            yield folder
        finally:
            os.close(folder)


@contextmanager
def _open_file(name: str, parent: int) -> Iterator[int]:
    with _allow(name, parent, 0, 0o400):
        file = os.open(name, _PLAIN, dir_fd=parent)
        try:
            yield file
        finally:
            os.close(file)


@contextmanager
def _allow(name: str, parent: int, kind: int, wanted: int) -> Iterator[None]:
    """Give ourselves rights that the mode withholds from its owner; nothing withholds them from root."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        lacking = os.geteuid() != 0 and mode & wanted != wanted
        if lacking:
            Path(f"/proc/self/fd/{place}").chmod(mode | wanted)
        try:
            yield
        finally:
            if lacking:
                with suppress(FileNotFoundError):
                    Path(f"/proc/self/fd/{place}").chmod(mode)
    finally:
        os.close(place)


def exceeds(folders: tuple[Path, ...], *, most_bytes: int, most_files: int) -> bool:
    """Whether folders hold more than they may, all together; looked at no further than to the limit."""
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
    """Remove a folder with everything in it, however deep; nothing may be at work in it any more.

    Inner folders are first moved to the top, as they may lie deeper than a path can be long.
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
    """Remove the files of a folder and move its folders to the top; return the names that these have there."""
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
