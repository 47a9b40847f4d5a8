"""The repositories of a single person at this machine, each brought to HEAD before it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent import CodeSearch
from bot.repositories.ref_chooser import RefChooser
from bot.repositories.refresh import ProgressDisplay, refresh_if_stale, refresh_index
from indexer import Drift, IndexStatus, Progress, RefreshReport

if TYPE_CHECKING:
    from bot.ports import RefSource, RepositoryIndex


class LocalRepositories:
    """Repositories brought to HEAD before they are read; a caller that stops waiting does not stop that."""

    def __init__(
        self,
        indexes: Mapping[str, RepositoryIndex],
        display: ProgressDisplay,
        refs: Mapping[str, RefSource] | None = None,
    ) -> None:
        self._indexes = indexes
        self._display = display
        self._refs = RefChooser(refs)
        self._refreshing: dict[str, asyncio.Task[None]] = {}

    def list_names(self) -> Sequence[str]:
        """Return all names."""
        return tuple(self._indexes)

    async def status(self, name: str) -> IndexStatus:
        """Describe the index of a repository."""
        return await self._indexes[name].status()

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """Return the commits of a repository since one, and which of the paths they changed."""
        return await self._indexes[name].drift(commit, paths)

    async def pin(self, repository: str | None = None, *, at: str = "") -> CodeSearch:
        """Bring a repository to HEAD, and pin it there; if that fails, use the existing index.

        `at` names another branch, tag, commit or pull request to pin.
        """
        name = repository or self.list_names()[0]
        if name not in self._refreshing:
            task = asyncio.create_task(refresh_if_stale(self._indexes[name], self._display))
            self._refreshing[name] = task
            task.add_done_callback(lambda _: self._refreshing.pop(name))
        await asyncio.shield(self._refreshing[name])
        ref = await self._refs.find(name, at) if at else None
        return await (self._indexes[name].pin() if ref is None else self._refs.pin(name, ref))

    async def pin_existing(self, name: str) -> CodeSearch:
        """Pin a repository as `pin` does: here, questions are answered at HEAD."""
        return await self.pin(name)

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index HEAD of a repository."""
        loop = asyncio.get_running_loop()

        def tell(told: Progress) -> None:
            if progress is not None:
                loop.call_soon_threadsafe(progress, told)

        return await refresh_index(self._indexes[name], self._display, full=full, listener=tell)

    async def close(self) -> None:
        """Stop indexing; the previous index stays."""
        for task in list(self._refreshing.values()):
            task.cancel()
        await asyncio.gather(*self._refreshing.values(), return_exceptions=True)
