"""Locks of the kernel on files of a folder, which end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def lock_file(path: Path, *, shared: bool = False, waits: bool = False) -> int | None:
    """Lock a file, which is made if it is missing, until the descriptor is closed.

    None if it is locked otherwise, unless that `waits`, or if its folder is gone. Raises OSError.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
