"""Processes that refresh an index and are killed on the way: `python -m tests.fakes.crashing`.

Each line of its input is a JSON list of a repository, a data folder and a point: the name of a step of a refresh,
before (`<`) or after (`>`) which the process gets SIGKILL. A repository that is an address is fetched first. The
answer is how the process ended. They are forked: what takes seconds to import is imported once.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import chromadb  # noqa: F401 - imported before the forks
import git  # noqa: F401
import numpy as np

import indexer.generations.pipeline  # noqa: F401
from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.search.snapshot import Snapshot
from indexer.store.catalog_writer import CatalogWriter
from indexer.store.data_folder import DataFolder
from indexer.store.vectors import ChromaVectors
from tests.waiting import LIMIT_SECONDS

STEPS: dict[str, tuple[object, str]] = {
    "fetch": (RemoteClone, "_fetch"),
    "switch": (RemoteClone, "_switch"),
    "generation": (CatalogWriter, "begin_generation"),
    "removal": (CatalogWriter, "remove_files"),
    "file": (CatalogWriter, "add_file"),
    "chunks": (CatalogWriter, "add_parsed"),
    "vectors": (ChromaVectors, "add"),
    "array": (np, "save"),
    "snapshot": (Snapshot, "save"),
    "sweep": (CatalogWriter, "sweep"),
    "folder": (DataFolder, "remove"),
}
POINTS = (
    "generation>", "removal>", "file>", "chunks>", "vectors<", "vectors>", "array>", "snapshot>", "sweep<", "sweep>",
    "folder<",
)  # fmt: skip
REMOTE_POINTS = (
    "fetch<", "fetch>", "switch>", "generation>", "file>", "vectors<", "vectors>", "snapshot>", "sweep<", "folder<",
)  # fmt: skip


def is_switched(point: str) -> bool:
    """Whether the new generation is the current one at a point."""
    return point.startswith(("sweep", "folder"))


class Crashes:
    """The program that starts processes and waits for their end."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.crashing"],
            cwd=Path(__file__).parent.parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def killed(self, repository: Path | str, home: Path, point: str) -> bool:
        """Refresh in a process of its own; whether that was killed, and did not end by itself."""
        return await asyncio.to_thread(self._asked, str(repository), str(home), point) == -signal.SIGKILL

    def _asked(self, *line: str) -> int:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        print(json.dumps(line), file=self._program.stdin, flush=True)
        return int(self._program.stdout.readline())

    def close(self) -> None:
        self._program.communicate(timeout=LIMIT_SECONDS)


def arm(point: str) -> None:
    """Make the process kill itself at a point."""
    owner, name = STEPS[point[:-1]]
    step: Callable[..., Any] = getattr(owner, name)

    def deadly(*arguments: Any, **options: Any) -> Any:
        if point.endswith("<"):
            os.kill(os.getpid(), signal.SIGKILL)
        step(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    async def deadly_later(*arguments: Any, **options: Any) -> Any:
        if point.endswith(">"):
            await step(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, deadly_later if inspect.iscoroutinefunction(step) else deadly)


async def refresh(repository: str, home: Path) -> None:
    """Refresh, or die."""
    path = Path(repository)
    if "://" in repository:
        clone = RemoteClone(RemoteRepository(name="shop", url=repository), home)
        await clone.newest()
        path = clone.path
    index = await CodeIndex.open(path, home=home)
    try:
        await index.refresh()
    finally:
        await index.aclose()


def _refresh(repository: str, home: str, point: str) -> NoReturn:
    code = 1
    try:
        arm(point)
        asyncio.run(refresh(repository, Path(home)))
        code = 0
    except Exception:  # noqa: BLE001 - a forked process must not go on as its parent would
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Do what the lines say, one after the other."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _refresh(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201 - the other side reads it


if __name__ == "__main__":
    main()
