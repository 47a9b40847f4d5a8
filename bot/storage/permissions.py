"""Closes the data folder to all but its owner, whatever the umask is, and finds how others could still reach it."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bot.errors import FolderError

log = logging.getLogger(__name__)

_OTHERS = 0o077
_ROOT = 0
_UNMAPPED = 65_534  # whom files belong to whose owner is not known in a container


def restrict_umask() -> None:
    """Make everything that this process and its children create from now on readable by its user alone."""
    os.umask(_OTHERS)


def secure_folder(home: Path) -> None:
    """Create a data folder if it is missing, and take rights from others if they have any.

    `FolderError` where it belongs to another user, who could put anything into it. What only the operator can put
    right is logged.
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
    """Describe how other users could read or replace a data folder; empty if none can."""
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
    """Take rights from others; return for how much. Below a folder that was closed, nothing can have been opened."""
    if not stat.S_IMODE(home.stat().st_mode) & _OTHERS:
        return sum(_close(path) for path in home.iterdir())
    # The folder itself first: from then on nobody else gets at what is in it.
    return _close(home) + sum(_close(path) for path in home.rglob("*"))


def _close(path: Path) -> bool:
    """Take the rights of others from a file or a folder, if they have any and this process may."""
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
    """Name each folder in which others may rename files, and why they may."""
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
