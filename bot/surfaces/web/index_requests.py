"""Indexing that people ask for on the page: it runs on its own, and tells how far it has come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.ports import Repositories
from bot.questions.descriptions import describe_progress, describe_refresh
from indexer import IndexerError, Progress

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RequestedIndexing:
    """Indexing that somebody asked for on the page; `outcome` says what came of it."""

    progress: str = "Starting"
    share: float | None = None
    outcome: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return bool(self.outcome)


class IndexRequests:
    """Has repositories indexed, one at a time each, anyone who is looking."""

    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories
        self._requested: dict[str, RequestedIndexing] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """At the end nothing is followed any more; what is in progress is the library's to end."""
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def find(self, name: str) -> RequestedIndexing | None:
        """Return what was asked for last."""
        return self._requested.get(name)

    def begin(self, name: str) -> None:
        """Have a repository indexed, unless that is in progress."""
        known = self._requested.get(name)
        if known is not None and not known.is_over:
            return
        requested = self._requested[name] = RequestedIndexing()
        task = asyncio.create_task(self._index(name, requested))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _index(self, name: str, requested: RequestedIndexing) -> None:
        def show(progress: Progress) -> None:
            requested.progress = describe_progress(name, progress)
            requested.share = min(1.0, progress.done / progress.total) if progress.total > 0 else None

        outcome = "This failed; see the log. Try again."
        try:
            report = await self._repositories.refresh(name, progress=show)
            outcome = describe_refresh(report, name).replace("`", "")
        except IndexerError as error:
            log.warning("%s could not be indexed for the page: %s", name, error)
            outcome = str(error)
        finally:
            requested.outcome = outcome
