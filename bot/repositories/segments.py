"""Indexes shared by machines: indexers publish them in an object store, and answerers serve them.

The newest commit of a repository is published after every refresh, any other one on demand: an
answerer requests it by a job that is named `shop@refs/heads/release-2`, `shop@#12` or `shop@` and
an id.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent import CodeSearch
from bot.ports import RefreshJobs
from bot.tasks import run_in_background
from indexer import NamedRef, RefreshReport

if TYPE_CHECKING:
    from indexer import (
        Bucket,
        ListedRefs,
        LocalGenerations,
        Manifests,
        Progress,
        Publisher,
        ReadingParts,
        RefKind,
        RefTable,
        RepositoryRefs,
        SharedIndex,
    )

# Calls the callback whenever a publication is possible, while its context is open.
Listen = Callable[[Callable[[], None]], AbstractAsyncContextManager[None]]

log = logging.getLogger(__name__)

_NOTE_SECONDS = 15.0  # from one look at the refs of a repository to the next
_MAX_OPEN = 2  # commits besides the newest that stay open unread; each holds its arrays in memory
_COMMIT = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_CACHE_FOLDER = "generations"  # in the data folder
_SCRATCH_FOLDER = "publishing"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexLag:
    """The lag of the served index behind the published one: versions, and seconds of age."""

    repository: str
    versions: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SharedSegments:
    """An object store, and the register of the served generation of each repository."""

    store: Bucket
    manifests: Manifests
    generations: LocalGenerations
    scratch: Path
    listen: Listen
    followed: dict[str, SharedIndex] = field(default_factory=dict)

    def open_publisher(self) -> Publisher:
        """Return the publisher of this machine's indexes."""
        from indexer import Publisher

        return Publisher(self.store, self.manifests, self.scratch)

    def publish_refs(self, refs: Mapping[str, RepositoryRefs]) -> RefPublisher:
        """Return the publisher of other commits for the repositories on this machine, and their refs."""
        return RefPublisher(refs, self.open_publisher())

    def open_index(self, parts: ReadingParts, commit: str = "") -> SharedIndex:
        """Return the index of a repository that another machine publishes, at its newest commit or another one.

        Nothing is downloaded yet.
        """
        from indexer import SharedIndex

        return SharedIndex(
            parts, store=self.store, manifests=self.manifests, generations=self.generations, commit=commit
        )

    def open_refs(self, parts: ReadingParts, newest: SharedIndex, jobs: RefreshJobs) -> SharedRefs:
        """Return the branches, tags, commits and pull requests of a repository that another machine publishes."""
        return SharedRefs(newest, partial(self.open_index, parts), self, jobs)

    @asynccontextmanager
    async def follow(self, indexes: Mapping[str, SharedIndex]) -> AsyncIterator[None]:
        """Download publications of the repositories asked about here, as long as the context is open."""
        from indexer import Follower

        self.followed.update(indexes)
        follower = Follower(indexes, self.manifests)
        async with self.listen(follower.notify), run_in_background(follower.run()):
            yield

    async def measure_lags(self) -> Sequence[IndexLag]:
        """Compare the served versions with the last published ones; raises `SegmentsUnavailable`."""
        newest, lags = await self.manifests.list_versions(), []
        for name, index in self.followed.items():
            served = index.get_served()
            if served is None or name not in newest:
                continue
            version, indexed_at = served
            late = await self.manifests.read(name) if newest[name] > version else None
            published_at = late.status.indexed_at if late is not None else None
            seconds = max(0.0, published_at - indexed_at) if published_at is not None else 0.0
            lags.append(IndexLag(repository=name, versions=max(0, newest[name] - version), seconds=seconds))
        return lags

    async def measure_cache(self) -> int:
        """Return the bytes that generations take on this disk."""
        return await asyncio.to_thread(self.generations.measure)

    async def sweep(self) -> int:
        """Delete unneeded objects from the object store; return their number."""
        from indexer import sweep_segments

        return await sweep_segments(self.store, self.manifests)


class RefPublisher:
    """Publishes requested commits other than the newest, and the list of refs."""

    def __init__(self, refs: Mapping[str, RepositoryRefs], publisher: Publisher) -> None:
        self._refs = refs
        self._publisher = publisher
        self._noted: dict[str, tuple[float, ListedRefs]] = {}

    async def publish(self, name: str, written: str, progress: Callable[[Progress], None]) -> RefreshReport:
        """Index and publish a repository at a ref, unless it is already published.

        Raises `UnknownRevision` if the ref does not exist.
        """
        began = time.monotonic()
        reader = await self._refs[name].publish(written, self._publisher, progress)
        commit = reader.commit.sha
        log.info("%s is published at %s, which is %s", name, written, commit[:12])
        return RefreshReport(
            commit=commit, previous=None, changed=0, removed=0, files=0, chunks=0, seconds=time.monotonic() - began
        )

    async def note(self, name: str) -> None:
        """Record the refs of a repository for other machines, periodically, and after changes."""
        noted_at, before = self._noted.get(name, (-_NOTE_SECONDS, None))
        if time.monotonic() - noted_at < _NOTE_SECONDS:
            return
        refs = await self._refs[name].list_all()
        if refs != before:
            await self._publisher.manifests.note_refs(name, refs)
        self._noted[name] = (time.monotonic(), refs)


class SharedRefs:
    """The refs of a repository on another machine.

    Their names are the last published ones. An indexer publishes a missing commit while somebody waits; commits on this
    disk are read at once.
    """

    problem = ""  # of branches that are kept, which is for indexers to say

    def __init__(
        self, newest: SharedIndex, open_index: Callable[[str], SharedIndex], segments: SharedSegments, jobs: RefreshJobs
    ) -> None:
        self._name = newest.name
        self._newest = newest
        self._open_index = open_index
        self._manifests = segments.manifests
        self._generations = segments.generations
        self._jobs = jobs
        self._opened: dict[str, SharedIndex] = {}  # by commit, the one used last at the end

    @property
    def page(self) -> str:
        """The address of the repository's page at its host; empty if unknown."""
        return self._newest.web_url or ""

    async def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        """Find the meaning of a name; ask an indexer for pull requests and abbreviated commits.

        None if the repository has nothing of that name and kind.
        """
        name = written.strip()
        if kind == "pull request":
            number = name.lstrip("#!")
            if not (number.isascii() and number.isdecimal()):
                return None
            sign = "!" if name.startswith("!") else "#"
            return await self._find_by_indexer(f"{sign}{number}", kind)
        if kind != "commit":
            refs = await self._manifests.read_refs(self._name)
            found = self._make_table(refs).find(name, kind)
            if found is not None:
                return replace(found, is_followed=found.kind == "branch" and found.name == refs.followed)
        if kind in {"branch", "tag"} or not _COMMIT.fullmatch(name):
            return None
        if await self._is_published(commit := name.lower()):
            return NamedRef(kind="commit", name=commit[:12], commit=commit)
        return await self._find_by_indexer(commit, "commit")

    async def suggest(self, written: str) -> Sequence[str]:
        """Suggest the branches and tags with the most similar names."""
        return self._make_table(await self._manifests.read_refs(self._name)).suggest(written)

    async def pin(self, ref: NamedRef, progress: Callable[[Progress], None] | None = None) -> CodeSearch:
        """Pin the code at a ref; if nobody has asked about it recently, an indexer publishes it first."""
        commit = ref.commit
        if not await self._is_published(commit):
            commit = await self._publish(ref.full_name or ref.commit, progress)
        index = self._opened.pop(commit, None) or self._open_index(commit)
        self._opened[commit] = index
        reader = await index.pin()
        await self.sweep()
        return reader

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        """Read the lines of a file at an open commit, or in its past."""
        for index in (self._newest, *reversed(self._opened.values())):
            lines = await index.read_file(commit, path)
            if lines is not None:
                return lines
        return None

    async def list_kept(self) -> Sequence[NamedRef]:
        """List nothing: indexers keep branches."""
        return ()

    async def refresh_kept(self) -> Sequence[NamedRef]:
        """Do nothing: indexers keep branches."""
        return ()

    async def sweep(self) -> None:
        """Close the least recently used; publishing limits the disk space."""
        from indexer import name_beside

        for commit in [*self._opened][:-_MAX_OPEN]:
            await asyncio.to_thread(self._generations.close_idle, name_beside(self._name, commit))
            if not self._opened[commit].is_open:
                del self._opened[commit]

    def _make_table(self, refs: ListedRefs) -> RefTable:
        from indexer import RefTable

        return RefTable(refs.commits)

    async def _is_published(self, commit: str) -> bool:
        """Whether a commit can be downloaded in the present index format."""
        from indexer import name_beside

        beside = await self._manifests.read(name_beside(self._name, commit))
        newest = await self._manifests.read(self._name)
        return beside is not None and newest is not None and beside.provenance == newest.provenance

    async def _find_by_indexer(self, written: str, kind: RefKind) -> NamedRef:
        commit = await self._publish(written, None)
        name, full_name = (written, written) if kind == "pull request" else (commit[:12], "")
        return NamedRef(kind=kind, name=name, commit=commit, full_name=full_name)

    async def _publish(self, written: str, progress: Callable[[Progress], None] | None) -> str:
        """Have an indexer publish the code at a ref, and return the commit; raises its error."""
        log.info("%s is to be published at %s", self._name, written)
        async for step in await self._jobs.ask_for_refresh(f"{self._name}@{written}", join=True):
            if isinstance(step, RefreshReport):
                return step.commit
            if progress is not None:
                progress(step)
        raise AssertionError("a refresh ends with a report or an error")


def _hear_nothing(_: Callable[[], None]) -> AbstractAsyncContextManager[None]:
    """Do nothing: followers poll by themselves."""
    return nullcontext()


@asynccontextmanager
async def open_segments(
    url: str, home: Path, manifests: Manifests, *, cache_bytes: int, listen: Listen = _hear_nothing
) -> AsyncGenerator[SharedSegments]:
    """Open the object store at an address, and the register of the served generation of each repository.

    `listen` notifies followers of publications before they poll. Raises `SegmentsUnavailable`, also
    if the bucket is another cluster's.
    """
    from indexer import LocalGenerations, claim_bucket, open_bucket

    store = open_bucket(url)
    await claim_bucket(store, await manifests.identify_cluster())
    generations = LocalGenerations(home / _CACHE_FOLDER, cache_bytes)
    try:
        yield SharedSegments(
            store=store, manifests=manifests, generations=generations, scratch=home / _SCRATCH_FOLDER, listen=listen
        )
    finally:
        await asyncio.to_thread(generations.close)
