"""A process that refreshes an index and gets SIGKILL before (`<`) or after (`>`) a step, by its name."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.search.snapshot import Snapshot
from indexer.store import kept_parses
from indexer.store.catalog_writer import CatalogWriter
from indexer.store.data_folder import DataFolder
from indexer.store.vectors import ChromaVectors
from tests.forks import import_all

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


def warm_up() -> None:
    """Import what a refresh imports as soon as it needs it."""
    import_all("chromadb", "git", "indexer.generations.pipeline")


def is_switched(point: str) -> bool:
    """Whether the new generation is the current one at a point."""
    return point.startswith(("sweep", "folder"))


def refresh_long_and_die(repository: str, home: str, point: str) -> None:
    """Refresh in this process as one that has taken long, which gets SIGKILL at a point."""
    refresh_and_die(repository, home, point, keep_after=0.0)


def refresh_shortly_and_die(repository: str, home: str, point: str) -> None:
    """Die at a point of a refresh that has not taken long."""
    refresh_and_die(repository, home, point, keep_after=600.0)


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
    """Refresh; a repository that is an address is fetched first."""
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


def refresh_and_die(repository: str, home: str, point: str, *, keep_after: float | None = None) -> None:
    """Refresh in this process, which gets SIGKILL at a point; what it parses is kept after so many seconds, at once."""
    arm(point)
    if keep_after is not None:
        kept_parses.KEEP_AFTER_SECONDS, kept_parses.COMMIT_SECONDS = keep_after, 0.0
    asyncio.run(refresh(repository, Path(home)))
