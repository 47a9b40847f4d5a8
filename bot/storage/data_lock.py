"""The lock on a data folder: shared by every citebot that uses it, exclusive for a restore."""

from __future__ import annotations

import fcntl
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from bot.errors import BackupError
from bot.storage.permissions import secure_folder

LOCK = "in_use.lock"


def hold_shared_lock(home: Path) -> AbstractContextManager[object]:
    """Use a data folder until the context is closed, for its owner alone.

    `BackupError` while a backup is being restored into it, `FolderError` where it is somebody else's. Where no lock
    can be had, as in a folder that is read-only, the folder is used without one.
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
    """Lock a data folder for this process alone, and create it if missing; `BackupError` while another one uses it."""
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
