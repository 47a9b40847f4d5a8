"""Refreshes as jobs of this process: one per repository at a time, with its progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from indexer import Progress, RefreshReport

if TYPE_CHECKING:
    from bot.ports import RefreshCourse, RefreshWork

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False)
class _Refresh:
    """A refresh that waits or is in progress; `end` gets its report or its error."""

    repository: str
    full: bool
    end: asyncio.Future[RefreshReport] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    followers: list[asyncio.Queue[Progress | None]] = field(default_factory=list)

    def tell(self, progress: Progress | None) -> None:
        """Send the progress to all followers; None: it has ended."""
        for follower in self.followers:
            follower.put_nowait(progress)

    async def follow(self) -> AsyncGenerator[Progress | RefreshReport, None]:
        """Stream the progress from now on, and the report; raises the final error."""
        told = asyncio.Queue[Progress | None]()
        self.followers.append(told)
        try:
            while not self.end.done() and (progress := await told.get()) is not None:
                yield progress
        finally:
            self.followers.remove(told)
        yield self.end.result()

    def merge_into(self, later: _Refresh) -> None:
        """Move all followers to another refresh of the same repository."""
        later.full = later.full or self.full
        later.followers.extend(self.followers)
        self.followers, self.end = later.followers, later.end


class LocalRefreshJobs:
    """Keeps requests in memory: after a restart, the watcher sees which repositories are behind."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Refresh] = {}
        self._under_way: dict[asyncio.Task[RefreshReport], _Refresh] = {}
        self._refresh: RefreshWork | None = None
        self._at_once: int | None = None

    async def ask_for_refresh(self, repository: str, *, full: bool = False, join: bool = False) -> RefreshCourse:
        """Request a refresh, once more if one is in progress; requests share a waiting one."""
        if join and (begun := self._find_begun(repository)) is not None and begun.full >= full:
            return begun.follow()
        refresh = self._waiting.setdefault(repository, _Refresh(repository=repository, full=full))
        refresh.full = refresh.full or full
        self._begin_next()
        return refresh.follow()

    async def join_refresh(self, repository: str) -> RefreshCourse | None:
        """Return the course of the waiting refresh, else of the one in progress; None without either."""
        refresh = self._waiting.get(repository) or self._find_begun(repository)
        return refresh.follow() if refresh is not None else None

    def _find_begun(self, repository: str) -> _Refresh | None:
        return next((each for each in self._under_way.values() if each.repository == repository), None)

    @asynccontextmanager
    async def work_on_refreshes(self, refresh: RefreshWork, *, at_once: int | None = None) -> AsyncIterator[None]:
        """Refresh while the context is open, `at_once` repositories at most."""
        self._refresh, self._at_once = refresh, at_once
        self._begin_next()
        try:
            yield
        finally:
            self._refresh = None
            broken_off = [*self._under_way]
            for task in broken_off:
                task.cancel()
            await asyncio.gather(*broken_off, return_exceptions=True)

    def _begin_next(self) -> None:
        """Begin every refresh that may begin."""
        busy = {refresh.repository for refresh in self._under_way.values()}
        for refresh in [each for each in self._waiting.values() if each.repository not in busy]:
            if self._refresh is None or (self._at_once is not None and len(self._under_way) >= self._at_once):
                return
            del self._waiting[refresh.repository]
            task = asyncio.create_task(self._carry_out(refresh, self._refresh))
            self._under_way[task] = refresh
            task.add_done_callback(self._note_end)

    async def _carry_out(self, refresh: _Refresh, work: RefreshWork) -> RefreshReport:
        loop = asyncio.get_running_loop()

        def show(progress: Progress) -> None:
            loop.call_soon_threadsafe(refresh.tell, progress)

        return await work(refresh.repository, refresh.full, show)

    def _note_end(self, task: asyncio.Task[RefreshReport]) -> None:
        """Report the end of a refresh, and continue with jobs that waited for it; an interrupted one waits again."""
        refresh = self._under_way.pop(task)
        if task.cancelled():
            if (later := self._waiting.setdefault(refresh.repository, refresh)) is not refresh:
                refresh.merge_into(later)
        elif (error := task.exception()) is not None:
            log.warning("%s was not indexed: %s", refresh.repository, error)
            refresh.end.set_exception(error)
            refresh.end.exception()  # nobody may follow
        else:
            refresh.end.set_result(task.result())
        if not task.cancelled():
            refresh.tell(None)
        self._begin_next()
