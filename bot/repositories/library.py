"""A team's repositories, by name, each read from its index and refreshed as a job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agent import CodeMoved, CodeSearch
from bot.repositories.names import split_pinned_name
from bot.repositories.ref_chooser import RefChooser
from bot.repositories.refresh import ProgressDisplay, refresh_index
from indexer import (
    Drift,
    EmptyRepository,
    IndexerError,
    IndexStatus,
    NamedRef,
    NotIndexed,
    Progress,
    RefreshReport,
    RepositoryError,
    StorageLocked,
)

if TYPE_CHECKING:
    from bot.ports import RefreshJobs, RefSource, RepositoryIndex
    from bot.repositories.segments import RefPublisher

log = logging.getLogger(__name__)

CATCH_UP_SECONDS = 3.0  # that a "no" waits for a refresh of its repository
_LOOK_SECONDS = 5.0  # between looks at the branches that are kept

Listener = Callable[[Progress], None]


class BranchClone(Protocol):
    """The clone of a repository on another machine."""

    async def newest(self) -> object:
        """Fetch the newest commit; `IndexerError` gives the reason of a failure."""

    async def renew(self) -> object:
        """Fetch everything again."""


class _OneWait:
    """Waits for newer commits at the first "no" of an answer, and reuses the outcome for others."""

    def __init__(self, wait: Callable[[], Awaitable[bool]]) -> None:
        self._wait = wait
        self._lock = asyncio.Lock()
        self._is_behind: bool | None = None

    async def __call__(self) -> bool:
        """Whether newer commits are still being indexed."""
        async with self._lock:
            if self._is_behind is None:
                self._is_behind = await self._wait()
            return self._is_behind


class RepositoryLibrary:
    """Indexes by the names of their repositories; the first is the default.

    A question is answered from the existing index, and starts a refresh if HEAD has moved on. Only
    the first index of a repository is waited for, and by a "no", a refresh that ends soon.
    """

    def __init__(
        self,
        indexes: Mapping[str, RepositoryIndex],
        display: ProgressDisplay,
        jobs: RefreshJobs,
        *,
        clones: Mapping[str, BranchClone] | None = None,
        refs: Mapping[str, RefSource] | None = None,
        sharing: RefPublisher | None = None,
    ) -> None:
        self.refs = refs or {}
        self.describe_watch: Callable[[str], str] = lambda _: ""  # what a watcher reports of a repository
        self._sharing = sharing
        self._ref_chooser = RefChooser(self.refs)
        self._indexes = indexes
        self._display = display
        self._clones = clones or {}
        self._jobs = jobs
        self._settle_pushes: Callable[[str], Awaitable[None]] = _wait_for_nothing
        self._note_indexed: Callable[[str], None] = lambda _: None
        self._renewed: set[str] = set()  # clones that were fetched again, and not indexed since

    def list_names(self) -> Sequence[str]:
        """Name all repositories."""
        return tuple(self._indexes)

    async def status(self, name: str) -> IndexStatus:
        """Describe the index of a repository, its kept branches, and why it is not the newest."""
        status, refs = await self._index(name).status(), self.refs.get(name)
        kept = await refs.list_kept() if refs is not None else ()
        problems = filter(None, (refs.problem if refs is not None else "", self.describe_watch(name)))
        branches = tuple(ref.name for ref in kept) or status.branches
        return replace(status, branches=branches, warnings=(*status.warnings, *problems))

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """The changes in a repository since a commit, and those among the paths."""
        return await self._index(name).drift(commit, paths)

    async def pin(self, repository: str | None = None, *, at: str = "") -> CodeSearch:
        """Pin a repository at its newest indexed commit, or `at` a branch, a tag, a commit or a pull request.

        The repository's name may contain the full commit: `shop@` and the id. New refs are indexed
        first. Raises `UnknownRevision`, with the nearest names, if it does not exist.
        """
        name, commit = split_pinned_name(repository if repository is not None else self.list_names()[0])
        index = self._index(name)
        if commit or at:
            ref = NamedRef(kind="commit", name=commit[:12], commit=commit) if commit else None
            ref = ref or await self._ref_chooser.find(name, at)
            if ref is not None:
                return await self._ref_chooser.pin(name, ref)
        try:
            code = await index.pin()
        except NotIndexed:
            await self.refresh(name)
            return await index.pin()
        try:
            if not await index.is_current():
                await self._jobs.ask_for_refresh(name, join=True)
        except IndexerError as error:  # what is indexed has to do
            log.warning("%s: %s", name, error)
        code.follow(_OneWait(partial(self._catch_up, name, code.commit.sha)))
        return code

    async def _catch_up(self, name: str, commit: str) -> bool:
        """Wait for a refresh in progress or due; return whether it continues. `CodeMoved` if it brought a commit."""
        index = self._index(name)
        is_behind = False
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self._settle_pushes(name)
                course = await self._jobs.join_refresh(name)
                if course is None and not await index.is_current():
                    course = await self._jobs.ask_for_refresh(name, join=True)
                if course is not None:
                    async for _ in course:
                        pass
        except TimeoutError:
            is_behind = True
        except IndexerError as error:  # what is indexed has to do
            log.warning("%s: %s", name, error)
        if (await index.pin()).commit.sha != commit:
            raise CodeMoved
        return is_behind

    def follow(self, settle_pushes: Callable[[str], Awaitable[None]]) -> None:
        """Make each "no" wait for the pushes of its watched repository."""
        self._settle_pushes = settle_pushes

    def tell_when_indexed(self, note_indexed: Callable[[str], None]) -> None:
        """Register a listener for each repository indexed here."""
        self._note_indexed = note_indexed

    async def pin_existing(self, name: str) -> CodeSearch:
        """Pin the existing index of a repository, and start nothing."""
        return await self._index(name).pin()

    async def refresh(self, name: str, *, full: bool = False, progress: Listener | None = None) -> RefreshReport:
        """Fetch the newest commit of a repository, and index it."""
        self._index(name)
        if name in self._clones:
            await self._clones[name].newest()
        return await self.index_here(name, full=full, progress=progress)

    async def index_here(self, name: str, *, full: bool = False, progress: Listener | None = None) -> RefreshReport:
        """Index the newest local commit, joining a refresh in progress; a full one follows it."""
        self._index(name)
        async for step in await self._jobs.ask_for_refresh(name, full=full, join=True):
            if isinstance(step, RefreshReport):
                return step
            if progress is not None:
                progress(step)
        raise AssertionError("a refresh ends with a report or an error")

    async def fetch_and_index(self, name: str, full: bool, show: Listener) -> RefreshReport:
        """Carry out a request from any machine: fetch the newest commit, and index it."""
        if name in self._clones:
            await self._clones[name].newest()
        return await self.index_now(name, full, show)

    async def index_now(self, name: str, full: bool, show: Listener) -> RefreshReport:
        """Carry out a requested refresh on this machine.

        A damaged clone is fetched again first, but only once. A name with a ref, as in `shop@#12`, means indexing and
        publishing that ref.
        """
        owner, sign, written = name.partition("@") if name not in self._indexes else (name, "", "")
        if sign and owner in self.refs and self._sharing is not None:
            return await self._sharing.publish(owner, written, show)
        index = self._index(name)
        try:
            report = await refresh_index(index, self._display, full=full, listener=show)
        except RepositoryError as error:
            is_empty = isinstance(error, EmptyRepository)
            if is_empty or name not in self._clones or name in self._renewed:
                raise
            log.warning("%s: its clone is damaged and is fetched again: %s", name, error)
            self._renewed.add(name)
            await self._clones[name].renew()
            report = await refresh_index(index, self._display, full=full, listener=show)
        self._renewed.discard(name)
        self._note_indexed(name)
        return report

    async def keep_branches(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Keep the configured branches at their newest commits, until cancelled; failures are retried.

        Other machines get the list of all refs.
        """
        problems: dict[str, str] = {}
        while True:
            for name, refs in self.refs.items():
                try:
                    if self._sharing is not None:
                        await self._sharing.note(name)
                    await refs.refresh_kept()
                except IndexerError as error:
                    if problems.get(name) != str(error):
                        log.warning("%s: %s", name, error)
                    problems[name] = str(error)
            await sleep(_LOOK_SECONDS)

    async def sweep(self) -> Sequence[str]:
        """Delete unused parts of each index; return the problems of those that cannot be swept."""
        problems = []
        for name, index in self._indexes.items():
            try:
                await index.sweep()
            except StorageLocked:
                log.info("%s is being refreshed, which sweeps it as well", name)
            except IndexerError as error:
                problems.append(f"{name}: {error}")
        for name, refs in self.refs.items():
            try:
                await refs.sweep()
            except IndexerError as error:
                problems.append(f"{name}: {error}")
        return problems

    def _index(self, name: str) -> RepositoryIndex:
        if name not in self._indexes:
            raise NotIndexed(f"There is no repository {name[:80]!r} here. There are: {', '.join(self.list_names())}.")
        return self._indexes[name]


async def _wait_for_nothing(_: str) -> None:
    """Return immediately: nobody watches for pushes."""
