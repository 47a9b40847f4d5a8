"""Access to the data folder: permissions only for its owner, and an exclusive lock for a restore."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from bot.errors import BackupError, FolderError

log = logging.getLogger(__name__)

_OTHERS = 0o077
_ROOT = 0
_UNMAPPED = 65_534  # whom files belong to whose owner is not known in a container


def restrict_umask() -> None:
    """Make everything that this process and its children create readable only by its user."""
    os.umask(_OTHERS)


def secure_folder(home: Path) -> None:
    """Create a data folder if it is missing, and remove other users' rights.

    `FolderError` if it belongs to another user, who could put anything into it. Problems that only
    the operator can fix are logged.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Root may look at anybody's.
    if os.geteuid() != _ROOT and home.stat().st_uid not in {os.geteuid(), _ROOT}:
        raise FolderError(
            f"The data folder {home} belongs to the user {home.stat().st_uid}, who could change "
            "anything in it. Run citebot as that user, make the folder yours, or set CITEBOT_HOME to another one."
        )
    narrowed = _close_all(home)
    if narrowed:
        log.warning(
            "some files and folders in %s were open to others (%s in all); now they are their owner's alone",
            home,
            narrowed,
        )
    for sentence in find_exposures(home):
        log.warning("%s", sentence)


def find_exposures(home: Path) -> Sequence[str]:
    """Describe how other users could read or replace a data folder; empty if they cannot."""
    if not home.exists():
        return []
    found = home.stat()
    sentences = []
    if found.st_mode & _OTHERS:
        sentences.append(f"The data folder {home} is open to others (mode {stat.S_IMODE(found.st_mode):04o}).")
    if found.st_uid != os.geteuid():
        sentences.append(f"The data folder {home} belongs to the user {found.st_uid}, not to the one that runs this.")
    places = dict.fromkeys((*home.absolute().parents, *home.resolve().parents))
    sentences += [f"The data folder {home} can be replaced: {each}." for each in _find_replaceable(places)]
    return sentences


def _close_all(home: Path) -> int:
    """Remove other users' rights; return the number of changes. Below a closed folder, nothing can have been opened."""
    if not stat.S_IMODE(home.stat().st_mode) & _OTHERS:
        return sum(_close(path) for path in home.iterdir())
    # The folder itself first: after that, other users cannot reach its contents.
    return _close(home) + sum(_close(path) for path in home.rglob("*"))


def _close(path: Path) -> bool:
    """Remove other users' rights from a file or a folder, if this process may."""
    try:
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or not mode & _OTHERS:
            return False
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:  # another process works in it
        return False
    except OSError as error:
        log.warning("Others may get at %s: %s", path, error.strerror)
        return False
    return True


def _find_replaceable(folders: Iterable[Path]) -> Iterator[str]:
    """Name each folder in which others may rename files, and the reason."""
    for folder in folders:
        found = folder.stat()
        if found.st_uid not in {os.geteuid(), _ROOT, _UNMAPPED}:
            yield f"{folder} belongs to the user {found.st_uid}"
        elif found.st_mode & stat.S_ISVTX:  # there everybody can rename what is theirs alone
            continue
        elif found.st_mode & stat.S_IWOTH:
            yield f"everybody may write in {folder}"
        elif found.st_mode & stat.S_IWGRP and found.st_gid not in {os.getegid(), _ROOT}:
            yield f"the group {found.st_gid} may write in {folder}"


LOCK = "in_use.lock"


def hold_shared_lock(home: Path) -> AbstractContextManager[object]:
    """Use a data folder until the context is closed, exclusively for its owner.

    `BackupError` while a backup is being restored into it, `FolderError` if it belongs to somebody
    else. If no lock is possible, as in a read-only folder, use it without one.
    """
    try:
        file = _open_lock(home)
    except OSError:
        return nullcontext()
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise BackupError(f"A backup is being restored into {home}. Wait until that is done.") from error
    except OSError:  # a file system without locks
        file.close()
        return nullcontext()
    return file


def hold_exclusive_lock(home: Path) -> AbstractContextManager[object]:
    """Lock a data folder exclusively, creating it if missing; `BackupError` while another process uses it."""
    file = _open_lock(home)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise BackupError(f"Another citebot is using {home}. Stop it, and try again.") from error
    except OSError:  # a file system without locks cannot tell
        file.close()
        return nullcontext()
    return file


def _open_lock(home: Path) -> IO[bytes]:
    secure_folder(home)
    return (home / LOCK).open("ab")
