"""Measures what a process and all that descend from it hold: memory, and files that no folder has any more."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_BLOCK = 512  # bytes of a block as `stat` counts them
SOCKET_BYTES = 212_992  # what waits in one at most, where nobody changes the size of its buffer
_REMOVED = b" (deleted)"

FileKey = tuple[int, int]  # device and number


def measure_memory(process: int) -> int:
    """Return the resident bytes of a process and its descendants, and what the kernel may hold for their sockets.

    Memory that they share counts for each of them, a socket once.
    """
    pages, sockets = 0, set[str]()
    for folder in _walk_processes(process):
        with suppress(OSError):  # it has ended
            pages += int((folder / "statm").read_text(encoding="ascii").split()[1])
            sockets |= _list_sockets(folder)
    return pages * os.sysconf("SC_PAGE_SIZE") + len(sockets) * SOCKET_BYTES


def _list_sockets(folder: Path) -> set[str]:
    found = set[str]()
    for entry in (folder / "fd").iterdir():
        with suppress(OSError):  # it was closed
            if (target := str(entry.readlink())).startswith("socket:"):
                found.add(target)
    return found


def measure_removed_files(process: int) -> int:
    """Return the bytes of the files that were removed, and that a process or its descendants have open or mapped.

    They take their room on the disk for as long as anybody holds them, and no walk through folders finds them.
    """
    sizes: dict[FileKey, int] = {}
    for folder in _walk_processes(process):
        with suppress(OSError):
            sizes |= _list_mapped(folder)
            sizes |= _list_open(folder)
    return sum(sizes.values())


def _list_open(folder: Path) -> dict[FileKey, int]:
    found: dict[FileKey, int] = {}
    for entry in (folder / "fd").iterdir():
        with suppress(OSError):  # it was closed
            status = entry.stat()
            if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                found[status.st_dev, status.st_ino] = _BLOCK * status.st_blocks
    return found


def _list_mapped(folder: Path) -> dict[FileKey, int]:
    """List what is mapped, with as many bytes as are: more cannot be seen of a file that is not open."""
    found: dict[FileKey, int] = {}
    for line in (folder / "maps").read_bytes().splitlines():
        if line.endswith(_REMOVED):
            place, _, _, device, number, *_ = line.split()
            start, _, end = place.partition(b"-")
            major, _, minor = device.partition(b":")
            key = os.makedev(int(major, 16), int(minor, 16)), int(number)
            found[key] = found.get(key, 0) + int(end, 16) - int(start, 16)
    return found


def _walk_processes(process: int) -> Iterator[Path]:
    """Yield the folder of a process in /proc, and those of all that descend from it."""
    waiting, seen = [process], {process}
    while waiting:
        folder = _PROCESSES / str(waiting.pop())
        yield folder
        with suppress(OSError):  # it has ended
            for task in (folder / "task").iterdir():
                children = {int(child) for child in (task / "children").read_text(encoding="ascii").split()}
                waiting += children - seen
                seen |= children
