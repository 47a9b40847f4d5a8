"""The index of a remote repository for one person: the host is checked for new commits before a question."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent import CodeSearch
    from bot.ports import RepositoryIndex
    from bot.repositories.library import BranchClone
    from indexer import Drift, IndexStatus, Progress, RefreshReport


class ClonedIndex:
    """An index whose HEAD is fetched first, at most once in `interval` seconds; a `refresh` always fetches.

    `say` announces the first fetch, which may take long.
    """

    def __init__(
        self,
        index: RepositoryIndex,
        clone: BranchClone,
        *,
        interval: float,
        say: Callable[[str], None],
        read_time: Callable[[], float] = time.monotonic,
    ) -> None:
        self._index = index
        self._clone = clone
        self._interval = interval
        self._say = say
        self._read_time = read_time
        self._next = 0.0

    async def is_current(self) -> bool:
        """Return whether the host's newest commit is indexed; `IndexerError` says why it cannot be fetched."""
        if self._read_time() >= self._next:
            await self._fetch()
        return await self._index.is_current()

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index the newest commit of the host."""
        await self._fetch()
        return await self._index.refresh(full=full, progress=progress)

    async def _fetch(self) -> None:
        is_first = not self._next
        self._next = self._read_time() + self._interval  # a host that is down keeps nobody waiting twice
        status = await self._index.status()
        if is_first and status.commit is None:
            self._say(f"Fetching {status.repository} ...")
        await self._clone.newest()

    async def pin(self) -> CodeSearch:
        """Pin the existing index."""
        return await self._index.pin()

    async def status(self) -> IndexStatus:
        """Describe the index."""
        return await self._index.status()

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """Return the commits since one, and which of the paths they changed."""
        return await self._index.drift(commit, paths)

    async def sweep(self) -> None:
        """Delete unused data."""
        await self._index.sweep()
