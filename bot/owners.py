"""The name of this process among those that share an inbox, and whether another one still lives."""

from __future__ import annotations

import os
import socket
import uuid


def make_process_name() -> str:
    """Return a name for this process that no other has, before or after it."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def is_process_dead(owner: str, own: str) -> bool:
    """Whether the process of that name is known to have ended; False where this machine cannot tell."""
    host, _, rest = owner.rpartition("/")[0].rpartition("/")
    if owner == own or host != socket.gethostname() or not rest.isdecimal():
        return False
    return int(rest) == os.getpid() or not _is_running(int(rest))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
