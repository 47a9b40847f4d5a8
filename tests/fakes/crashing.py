"""A process that refreshes an index and is killed on the way: `python -m tests.fakes.crashing REPO HOME POINT`.

A point is the name of a step of a refresh, before (`<`) or after (`>`) which the process gets SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from indexer.catalog import Writer
from indexer.index import CodeIndex
from indexer.snapshot import Snapshot
from indexer.storage import DataFolder
from indexer.vectors import ChromaVectors

STEPS: dict[str, tuple[object, str]] = {
    "generation": (Writer, "begin_generation"),
    "removal": (Writer, "remove_files"),
    "file": (Writer, "add_file"),
    "chunks": (Writer, "add_parsed"),
    "vectors": (ChromaVectors, "add"),
    "array": (np, "save"),
    "snapshot": (Snapshot, "save"),
    "sweep": (Writer, "sweep"),
    "folder": (DataFolder, "remove"),
}
POINTS = (
    "generation>", "removal>", "file>", "chunks>", "vectors<", "vectors>", "array>", "snapshot>", "sweep<", "sweep>",
    "folder<",
)  # fmt: skip


def arm(point: str) -> None:
    """Make the process kill itself at a point."""
    owner, name = STEPS[point[:-1]]
    step: Callable[..., Any] = getattr(owner, name)

    def deadly(*arguments: Any, **options: Any) -> Any:
        if point.endswith("<"):
            os.kill(os.getpid(), signal.SIGKILL)
        step(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, deadly)


async def refresh(repository: Path, home: Path) -> None:
    """Refresh, or die."""
    index = await CodeIndex.open(repository, home=home)
    try:
        await index.refresh()
    finally:
        await index.aclose()


if __name__ == "__main__":
    arm(sys.argv[3])
    asyncio.run(refresh(Path(sys.argv[1]), Path(sys.argv[2])))
