"""The index of a repository built by another machine: downloaded after publication, and served from this disk."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from indexer.errors import IndexDamaged, IndexerError, NotIndexed
from indexer.generations.reader import IndexReader
from indexer.git.file_contents import read_file_at
from indexer.remotes.ref_list import RefList
from indexer.segments.block_assembly import assemble, estimate_growth
from indexer.segments.bucket import Bucket
from indexer.segments.git_packs import write_git_folder
from indexer.segments.listing import decode_listing
from indexer.segments.local_generations import LocalGenerations, read_version
from indexer.segments.manifest_store import Manifest, Manifests, name_beside
from indexer.segments.opened_generation import OpenedGeneration, ReadingParts, check_provenance
from indexer.segments.publisher import GIT_FOLDER, hold_pin, read_listing
from indexer.store.data_folder import map_storage_errors, measure_folder
from indexer.types import Drift, IndexStatus, Progress, RefreshReport

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
_DOWNLOADS_AT_ONCE = 3
_LOOK_SECONDS = 0.2  # while another process of this machine downloads the same
_NOTHING = IndexStatus(
    repository="", path="", commit=None, branch=None, indexed_at=None, commits_behind=None, files=0, chunks=0,
    symbols=0, embedder="", disk_bytes=0, skipped={},
)  # fmt: skip


class SharedIndex:
    """One repository as published last.

    The local copy is served whatever happens to the store. A refresh downloads; only a process with
    the repository builds. With a `commit` it is the repository's publication at that commit.
    """

    def __init__(
        self,
        parts: ReadingParts,
        *,
        store: Bucket,
        manifests: Manifests,
        generations: LocalGenerations,
        commit: str = "",
    ) -> None:
        self._parts = parts
        self._published_as = name_beside(parts.name, commit) if commit else parts.name
        self._store = store
        self._manifests = manifests
        self._generations = generations
        self._refreshing = asyncio.Lock()
        self._problem = ""  # with what was published last

    @property
    def name(self) -> str:
        """The repository's name for people."""
        return self._parts.name

    @property
    def web_url(self) -> str | None:
        """The project's page, which links lead to."""
        return self._parts.web_url

    @property
    def is_open(self) -> bool:
        """Whether any version of it is served here."""
        return self._generations.get(self._published_as) is not None

    def get_served(self) -> tuple[int, float] | None:
        """Return the version served here, and the time of its indexing; None if nothing is."""
        opened = self._generations.get(self._published_as)
        return (read_version(opened.folder), opened.generation.indexed_at) if opened is not None else None

    async def pin(self) -> IndexReader:
        """Pin the local copy; a first question downloads it. `NotIndexed` before it is published."""
        opened, counts = self._generations.get(self._published_as), self._generations.counts
        if opened is None or opened.is_damaged:
            counts.misses += 1
            await self.refresh()
        else:
            counts.hits += 1
        reader = await asyncio.to_thread(self._generations.hold, self._published_as, self._parts)
        if reader is None:
            raise NotIndexed(f"{self.name} was just evicted from this disk. Ask again.")
        return reader

    async def is_current(self) -> bool:
        """Whether the local copy is the newest publication."""
        manifest, opened = await self._manifests.read(self._published_as), self._generations.get(self._published_as)
        if manifest is None or opened is None or opened.is_damaged:
            return False
        return opened.folder == self._generations.folder(manifest)

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Download the missing parts of the last publication; with `full`, check every local block.

        Raises `NotIndexed` if nothing was published, `SegmentsUnavailable`, or `StorageError`.
        """
        async with self._refreshing:
            began, before = time.monotonic(), self._generations.get(self._published_as)
            try:
                manifest, opened = await self._catch_up(progress or (lambda _: None), full=full)
            except IndexerError as error:
                self._problem = str(error)
                raise
            self._problem = ""
        return RefreshReport(
            commit=opened.generation.commit.sha,
            previous=before.generation.commit.sha if before is not None else None,
            changed=0,
            removed=0,
            files=manifest.status.files,
            chunks=manifest.status.chunks,
            seconds=time.monotonic() - began,
        )

    async def _catch_up(self, progress: Callable[[Progress], None], *, full: bool) -> tuple[Manifest, OpenedGeneration]:
        async with hold_pin(self._manifests, self._published_as, uuid.uuid4().hex) as manifest, self._lock():
            if manifest is None:
                raise NotIndexed(
                    f"{self.name} has not been published yet. Run citebot index or citebot serve on an indexer."
                )
            opened = self._generations.get(self._published_as)
            is_sound = opened is not None and not opened.is_damaged and not full
            if opened is None or not is_sound or opened.folder != self._generations.folder(manifest):
                opened = await self._bring(manifest, progress, is_sound=is_sound or opened is None)
                await asyncio.to_thread(self._generations.put, self._published_as, opened)
            return manifest, opened

    async def _bring(
        self, manifest: Manifest, progress: Callable[[Progress], None], *, is_sound: bool
    ) -> OpenedGeneration:
        """Open a version, after downloading its missing or damaged parts."""
        check_provenance(manifest.provenance, self._parts)
        folder = self._generations.folder(manifest)
        if is_sound and await asyncio.to_thread(folder.exists):
            try:
                return await asyncio.to_thread(OpenedGeneration.open, folder, self._parts)
            except IndexDamaged as error:
                log.warning("%s It is downloaded anew.", error)
        data = await read_listing(self._store, manifest)
        listing = await asyncio.to_thread(decode_listing, data, manifest.listing)
        await asyncio.to_thread(self._generations.doubt, manifest)
        names = dict.fromkeys([self._published_as, self.name])
        copies = [each for name in names for each in await asyncio.to_thread(self._generations.find_copies, name)]
        await asyncio.to_thread(self._generations.make_room, self._published_as, estimate_growth(listing, copies))
        draft = await asyncio.to_thread(self._generations.begin, manifest, data)

        def report(done: int, total: int) -> None:
            progress(Progress(stage="writing", done=done, total=total))

        assembled = await assemble(listing, self._store, draft, copies, report=report)

        def finish() -> None:
            with map_storage_errors(draft / "HEAD"):
                write_git_folder(draft / GIT_FOLDER, listing.history)
            self._generations.finish(manifest, assembled)

        await asyncio.to_thread(finish)
        return await asyncio.to_thread(OpenedGeneration.open, folder, self._parts)

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        """Wait until no other process of this machine downloads the repository, which may make this download
        needless.
        """
        while (lock := await asyncio.to_thread(self._generations.lock, self._published_as)) is None:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            os.close(lock)

    async def status(self) -> IndexStatus:
        """Describe the local copy, or the publication if there is none, and the obstacles to serving it."""
        warnings = (self._problem,) if self._problem else ()
        manifest = await self._manifests.read(self._published_as)
        published = manifest.status if manifest is not None else _NOTHING
        opened = self._generations.get(self._published_as)
        if opened is None:
            return replace(published, repository=self.name, disk_bytes=0, warnings=warnings)
        commit = opened.generation.commit
        counts = await asyncio.to_thread(opened.catalog.count_rows, opened.generation.id)
        return IndexStatus(
            repository=self.name,
            path=str(opened.folder / GIT_FOLDER),
            commit=commit.sha,
            branch=commit.branch,
            indexed_at=opened.generation.indexed_at,
            commits_behind=0 if published.commit == commit.sha else None,
            **counts,
            embedder=self._parts.embedder.name,
            disk_bytes=await asyncio.to_thread(measure_folder, opened.folder),
            skipped=opened.generation.skipped,
            plain_files=published.plain_files,
            warnings=(*opened.repository.warnings, *warnings),
            branches=published.branches,
        )

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        """Read the lines of a file at a commit, masked; None if the commit or the file is missing."""

        def read() -> Sequence[str] | None:
            opened = self._generations.get(self._published_as)
            if opened is None or not RefList(opened.repository.git).has_commit(commit):
                return None
            return read_file_at(opened.repository, commit, path)

        return await asyncio.to_thread(read)

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """Find the changes between a commit and the local one, in general and in the paths."""
        opened = self._generations.get(self._published_as)
        if opened is None:
            return Drift(behind=None, changed=None)
        head = opened.generation.commit.sha
        return await asyncio.to_thread(opened.repository.measure_drift, commit, head, paths)

    async def sweep(self) -> None:
        """Delete replaced generations that nobody reads any more."""
        await asyncio.to_thread(self._generations.close_unread)


class Follower:
    """Downloads publications of the repositories that have been asked about here.

    It polls every few seconds until it is cancelled; `notify` only saves the wait.
    """

    def __init__(self, indexes: Mapping[str, SharedIndex], manifests: Manifests, *, poll: float = POLL_SECONDS) -> None:
        self._indexes = indexes
        self._manifests = manifests
        self._poll = poll
        self._told = asyncio.Event()
        self._seen: dict[str, int] = {}
        self._slots = asyncio.Semaphore(_DOWNLOADS_AT_ONCE)

    def notify(self) -> None:
        """Note that something may have been published."""
        self._told.set()

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            self._told.clear()
            await self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), self._poll)

    async def look(self) -> None:
        """Download newer publications; failed downloads are retried next time."""
        try:
            versions = await self._manifests.list_versions()
        except IndexerError as error:
            log.warning("%s", error)
            return
        due = [
            (index, versions[name])
            for name, index in self._indexes.items()
            if index.is_open and versions.get(name) not in {None, self._seen.get(name)}
        ]
        async with asyncio.TaskGroup() as group:
            for index, version in due:
                group.create_task(self._refresh(index, version))

    async def _refresh(self, index: SharedIndex, version: int) -> None:
        try:
            async with self._slots:
                await index.refresh()
        except IndexerError as error:
            log.warning("%s: %s", index.name, error)
        else:
            self._seen[index.name] = version
