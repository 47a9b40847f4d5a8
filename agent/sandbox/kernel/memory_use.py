"""Measures how much memory a process and all that descend from it hold."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")


def measure_memory(process: int) -> int:
    """Return the resident bytes of a process and its descendants; memory that they share counts for each of them."""
    pages = 0
    waiting, seen = [process], {process}
    while waiting:
        folder = _PROCESSES / str(waiting.pop())
        with suppress(OSError):  # it has ended
            pages += int((folder / "statm").read_text(encoding="ascii").split()[1])
            for task in (folder / "task").iterdir():
                children = {int(child) for child in (task / "children").read_text(encoding="ascii").split()}
                waiting += children - seen
                seen |= children
    return pages * os.sysconf("SC_PAGE_SIZE")
