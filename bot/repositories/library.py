"""The repositories that a team can ask about, by name, each watched and refreshed by one task at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from agent import CodeSearch
from bot.ports import Repositories, RepositoryIndex
from bot.repositories.refresh import ProgressDisplay, refresh_index
from indexer import (
    Drift,
    EmptyRepository,
    IndexerError,
    IndexStatus,
    NotIndexed,
    Progress,
    RefreshReport,
    RepositoryError,
    StorageLocked,
)

log = logging.getLogger(__name__)

Listener = Callable[[Progress], None]


class _SharedProgress:
    """A display that passes progress on to listeners as well; a refresh reports from another thread."""

    def __init__(self, display: ProgressDisplay) -> None:
        self.listeners: list[Listener] = []
        self._display = display
        self._loop = asyncio.get_running_loop()

    @contextmanager
    def indexing(self, *, patience: float) -> Iterator[Listener]:
        """Show a refresh."""
        with self._display.indexing(patience=patience) as show:

            def report(progress: Progress) -> None:
                show(progress)
                self._loop.call_soon_threadsafe(self._notify, progress)

            yield report

    def note(self, text: str) -> None:
        """Pass a remark on."""
        self._display.note(text)

    def _notify(self, progress: Progress) -> None:
        for listener in self.listeners:
            listener(progress)


@dataclass(frozen=True, kw_only=True)
class _Work:
    """A refresh under way."""

    task: asyncio.Task[RefreshReport]
    progress: _SharedProgress
    full: bool


class BranchClone(Protocol):
    """The clone of a repository on another machine."""

    async def newest(self) -> object:
        """Fetch the newest commit; `IndexerError` says why that cannot be done."""

    async def renew(self) -> object:
        """Fetch everything again."""


class RepositoryLibrary:
    """Indexes by the names of their repositories; the first is the default.

    A question is answered from what is indexed, and starts a refresh where HEAD has moved on; only the first index of
    a repository is waited for.
    """

    def __init__(
        self,
        indexes: Mapping[str, RepositoryIndex],
        display: ProgressDisplay,
        *,
        clones: Mapping[str, BranchClone] | None = None,
    ) -> None:
        self._indexes = indexes
        self._display = display
        self._clones = clones or {}
        self._work: dict[str, _Work] = {}
        self._renewed: set[str] = set()  # clones that were fetched again, and not indexed since

    def list_names(self) -> Sequence[str]:
        """Name all repositories."""
        return tuple(self._indexes)

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed of a repository."""
        return await self._index(name).status()

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """What happened in a repository since a commit, and to which of the paths."""
        return await self._index(name).drift(commit, paths)

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Hold a repository at its newest indexed commit."""
        name = repository if repository is not None else self.list_names()[0]
        index = self._index(name)
        try:
            code = await index.pin()
        except NotIndexed:
            await self.refresh(name)
            return await index.pin()
        try:
            if not await index.is_current():
                self._start_refresh(name, full=False)
        except IndexerError as error:  # what is indexed has to do
            log.warning("%s: %s", name, error)
        return code

    async def pin_existing(self, name: str) -> CodeSearch:
        """Hold what is indexed of a repository by now, and begin nothing."""
        return await self._index(name).pin()

    async def refresh(self, name: str, *, full: bool = False, progress: Listener | None = None) -> RefreshReport:
        """Bring the newest commit of a repository here, and index it."""
        self._index(name)
        if name in self._clones:
            await self._clones[name].newest()
        return await self.index_here(name, full=full, progress=progress)

    async def index_here(self, name: str, *, full: bool = False, progress: Listener | None = None) -> RefreshReport:
        """Index the newest commit that is here, joining a refresh that is under way; a full one comes after it."""
        self._index(name)
        work = self._work.get(name)
        if work is not None and full and not work.full:
            await asyncio.wait({work.task})
        work = self._start_refresh(name, full=full)
        if progress is not None:
            work.progress.listeners.append(progress)
        return await asyncio.shield(work.task)

    async def sweep(self) -> Sequence[str]:
        """Drop what no answer reads any more of each index; return what is wrong with those that cannot be swept."""
        problems = []
        for name, index in self._indexes.items():
            try:
                await index.sweep()
            except StorageLocked:
                log.info("%s is being refreshed, which sweeps it as well", name)
            except IndexerError as error:
                problems.append(f"{name}: {error}")
        return problems

    async def aclose(self) -> None:
        """Stop the refreshes under way; what was indexed before stays."""
        tasks = [work.task for work in self._work.values()]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, IndexerError):
                await task

    def _index(self, name: str) -> RepositoryIndex:
        if name not in self._indexes:
            raise NotIndexed(f"There is no repository {name[:80]!r} here. There are: {', '.join(self.list_names())}.")
        return self._indexes[name]

    def _start_refresh(self, name: str, *, full: bool) -> _Work:
        work = self._work.get(name)
        if work is None:
            progress = _SharedProgress(self._display)
            task = asyncio.create_task(self._refresh_index(name, progress, full=full))
            work = self._work[name] = _Work(task=task, progress=progress, full=full)

            def finish(done: asyncio.Task[RefreshReport]) -> None:
                del self._work[name]
                if not done.cancelled() and done.exception() is not None:
                    log.warning("%s was not indexed: %s", name, done.exception())

            task.add_done_callback(finish)
        return work

    async def _refresh_index(self, name: str, display: _SharedProgress, *, full: bool) -> RefreshReport:
        """Index what is here; a clone that turns out damaged is fetched again first, but once."""
        try:
            report = await refresh_index(self._indexes[name], display, full=full)
        except RepositoryError as error:
            is_empty = isinstance(error, EmptyRepository)
            if is_empty or name not in self._clones or name in self._renewed:
                raise
            log.warning("%s: its clone is damaged and is fetched again: %s", name, error)
            self._renewed.add(name)
            await self._clones[name].renew()
            report = await refresh_index(self._indexes[name], display, full=full)
        self._renewed.discard(name)
        return report


class StatusSource(Protocol):
    """Watches the repositories."""

    def sentence(self, repository: str) -> str:
        """Describe what is wrong with a repository or worth knowing; empty if all is well."""


class WatchedRepositories:
    """Repositories whose status includes what their watcher reports."""

    def __init__(self, repositories: Repositories, watch: StatusSource) -> None:
        self._repositories = repositories
        self._watch = watch

    def list_names(self) -> Sequence[str]:
        """Name them all."""
        return self._repositories.list_names()

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed, and what keeps it from being the newest."""
        status = await self._repositories.status(name)
        sentence = self._watch.sentence(name)
        return replace(status, warnings=(*status.warnings, sentence)) if sentence else status

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """What happened in a repository since a commit, and to which of the paths."""
        return await self._repositories.drift(name, commit, paths)

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index the newest commit of a repository."""
        return await self._repositories.refresh(name, full=full, progress=progress)

    async def pin_existing(self, name: str) -> CodeSearch:
        """Hold what is indexed of a repository by now."""
        return await self._repositories.pin_existing(name)
