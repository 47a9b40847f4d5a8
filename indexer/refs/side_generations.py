"""Generations at commits other than the newest of the followed branch: built on demand, few of them kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from indexer.errors import IndexerError, NotIndexed, StorageError, StorageLocked
from indexer.index import CodeIndex
from indexer.remotes.ref_list import RefList
from indexer.store.data_folder import DataFolder, copy_index, map_storage_errors
from indexer.store.file_locks import lock_file
from indexer.types import NamedRef, Progress, RefKind

if TYPE_CHECKING:
    from indexer.generations.reader import IndexReader

log = logging.getLogger(__name__)

_PARENT = "refs"  # in the folder of the repository's index
_LOCK = "held.lock"
_NOTE = "ref.json"
_GONE = ".gone-"
_NAME = re.compile(r"([0-9a-f]{40,64})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class SideFolder:
    """The folder of one commit's generation; its name includes the versions that made it."""

    root: Path

    @classmethod
    def of(cls, index: DataFolder, commit: str, provenance: str) -> SideFolder:
        """Return the folder for a commit next to an index."""
        made_with = hashlib.blake2b(provenance.encode(), digest_size=4).hexdigest()
        return cls(index.root / _PARENT / f"{commit}-{made_with}")

    @property
    def name(self) -> str:
        """The commit, and the tools and settings of the generation."""
        return self.root.name

    @property
    def commit(self) -> str:
        """The indexed commit."""
        return self.root.name.partition("-")[0]

    @property
    def data(self) -> DataFolder:
        """The index itself."""
        return DataFolder(self.root)

    @property
    def is_complete(self) -> bool:
        """Whether the generation was built to its end."""
        return (self.root / _NOTE).is_file()

    @property
    def last_use(self) -> float:
        """The time of its last request, in seconds since the epoch; 0 if unknown."""
        try:
            return (self.root / _LOCK).stat().st_mtime
        except OSError:
            return 0.0

    def note(self, ref: NamedRef) -> None:
        """Record that the generation is complete, and the kind of its request."""
        with map_storage_errors(self.root / _NOTE):
            draft = self.root / f"{_NOTE}.unfinished"
            draft.write_text(json.dumps({"kind": ref.kind, "name": ref.name}), encoding="utf-8")
            draft.replace(self.root / _NOTE)

    def read_kind(self) -> RefKind | None:
        """Return the kind of its request; None if unknown."""
        try:
            kind = json.loads((self.root / _NOTE).read_text(encoding="utf-8"))["kind"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return kind if kind in get_args(RefKind) else None

    def hold(self) -> int:
        """Protect the folder against deletion, creating it if missing; return a descriptor to close later."""
        with map_storage_errors(self.root / _LOCK):
            while True:
                self.root.mkdir(parents=True, exist_ok=True)
                lock = lock_file(self.root / _LOCK, shared=True, waits=True)
                if lock is not None and _is_same(lock, self.root / _LOCK):  # else it was deleted meanwhile
                    os.utime(lock)
                    return lock
                if lock is not None:
                    os.close(lock)

    def touch(self) -> None:
        """Record another request."""
        with map_storage_errors(self.root / _LOCK):
            os.utime(self.root / _LOCK)

    def remove(self) -> bool:
        """Delete the folder, unless somebody holds it."""
        with map_storage_errors(self.root / _LOCK):
            lock = lock_file(self.root / _LOCK)
            if lock is None:
                return False
            gone = self.root.with_name(f"{_GONE}{uuid.uuid4().hex}")
            try:
                self.root.rename(gone)
            finally:
                os.close(lock)
            shutil.rmtree(gone, ignore_errors=True)
        return True


def list_side_folders(index: DataFolder) -> list[SideFolder]:
    """List the folders of side generations, the last used first, and delete leftovers of killed processes."""
    parent = index.root / _PARENT
    found = [path for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    for path in found:
        if path.name.startswith(_GONE):
            shutil.rmtree(path, ignore_errors=True)
    folders = [SideFolder(path) for path in found if _NAME.fullmatch(path.name)]
    return sorted(folders, key=lambda folder: -folder.last_use)


@contextmanager
def lock_building(index: DataFolder) -> Iterator[bool]:
    """Try to be the only process that builds next to an index; False if another one does."""
    path = index.root / _PARENT / "building.lock"
    with map_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_file(path)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


MAX_KEPT = 6  # generations that were asked for, beside those of branches that are kept
MAX_WAITING = 8  # that are built or wait for that: anybody who may ask can name any commit there ever was
_MAX_OPEN = 2  # that nobody reads; each holds its arrays in memory
_PULL_SECONDS = 7 * 86_400.0  # after which a pull request that nobody asks about is deleted
_FEW_CHANGES = 200  # files; with no more, no nearer commit is looked for
_WAIT_SECONDS = 600.0  # for what another process builds
_LOOK_SECONDS = 0.2

ProgressSink = Callable[[Progress], None]


@dataclass(kw_only=True)
class _Opened:
    """A generation opened here; `users` are about to pin it."""

    folder: SideFolder
    index: CodeIndex
    lock: int
    users: int = 0

    @property
    def is_idle(self) -> bool:
        return not self.users and not self.index.is_read


@dataclass(kw_only=True)
class _Build:
    """A generation being built or opened, and the observers of its progress."""

    task: asyncio.Task[_Opened]
    listeners: list[ProgressSink] = field(default_factory=list)


class SideGenerations:
    """The side generations of one index.

    They never become its newest, and the least used are deleted. A generation begins as a copy of the nearest existing
    one, so only files that differ are parsed and embedded.
    """

    def __init__(self, index: CodeIndex, *, most: int = MAX_KEPT, read_time: Callable[[], float] = time.time) -> None:
        self._index = index
        self._most = most
        self._read_time = read_time
        self._opened: dict[str, _Opened] = {}
        self._builds: dict[str, _Build] = {}
        self._building = asyncio.Lock()
        self._kept: frozenset[str] = frozenset()
        self._is_closing = False

    async def pin(self, ref: NamedRef, progress: ProgressSink | None = None) -> IndexReader:
        """Pin the generation of a commit in the repository, and build it first if it is missing.

        `progress` is called from a worker thread; its errors do not end the build, because others
        may be waiting.
        """
        folder = SideFolder.of(self._index.folder, ref.commit, self._index.provenance)
        opened = self._opened.get(folder.name) or await self._join_build(folder, ref, progress)
        opened.users += 1
        try:
            await asyncio.to_thread(opened.folder.touch)
            return await opened.index.pin()
        finally:
            opened.users -= 1

    async def has(self, commit: str) -> bool:
        """Whether the generation of a commit exists here, so that nobody has to wait for it."""
        folder = SideFolder.of(self._index.folder, commit, self._index.provenance)
        return folder.name in self._opened or await asyncio.to_thread(lambda: folder.is_complete)

    def get_opened(self, commit: str) -> CodeIndex | None:
        """Return the index of a pinned commit; None if it is not open here."""
        opened = self._opened.get(SideFolder.of(self._index.folder, commit, self._index.provenance).name)
        return opened.index if opened is not None else None

    async def keep(self, refs: Sequence[NamedRef]) -> None:
        """Build the missing ones of these, and keep them permanently; others may be deleted again.

        Raises the first error after trying all.
        """
        self._kept = frozenset(ref.commit for ref in refs)
        errors: list[IndexerError] = []
        for ref in refs:
            try:
                await self.pin(ref)
            except IndexerError as error:
                errors.append(error)
        await self.sweep()
        if errors:
            raise errors[0]

    async def sweep(self) -> Collection[str]:
        """Delete the least recently used generations, and old pull requests; return the remaining commits."""
        folders = await asyncio.to_thread(list_side_folders, self._index.folder)
        stale = self._choose_stale(folders)
        for folder in stale:
            opened = self._opened.get(folder.name)
            if opened is not None and opened.is_idle:
                await self._close_one(opened)
            if opened is None or folder.name not in self._opened:
                await asyncio.to_thread(folder.remove)
        idle = [opened for folder in folders if (opened := self._opened.get(folder.name)) and opened.is_idle]
        for opened in idle[_MAX_OPEN:]:
            await self._close_one(opened)
        return {folder.commit for folder in await asyncio.to_thread(list_side_folders, self._index.folder)}

    def _choose_stale(self, folders: Sequence[SideFolder]) -> list[SideFolder]:
        """Choose generations to delete: the least recently used beyond a limit, unfinished ones, and old pull
        requests.
        """
        now, asked_for = self._read_time(), 0
        stale: list[SideFolder] = []
        for folder in folders:
            if folder.name in self._builds:
                continue
            is_current = folder == SideFolder.of(self._index.folder, folder.commit, self._index.provenance)
            if is_current and folder.commit in self._kept:
                continue
            is_old = folder.read_kind() == "pull request" and now - folder.last_use > _PULL_SECONDS
            asked_for += 1
            if asked_for > self._most or is_old or not is_current or not folder.is_complete:
                stale.append(folder)
        return stale

    async def aclose(self) -> None:
        """Stop unfinished builds, and close everything."""
        self._is_closing = True
        builds = [build.task for build in self._builds.values()]
        if builds:
            await asyncio.wait(builds)
        for opened in [*self._opened.values()]:
            await self._close_one(opened)

    async def _close_one(self, opened: _Opened) -> None:
        self._opened.pop(opened.folder.name, None)
        await opened.index.aclose()
        os.close(opened.lock)

    async def _join_build(self, folder: SideFolder, ref: NamedRef, progress: ProgressSink | None) -> _Opened:
        """Wait for the one build of a commit. It continues without its asker, for the next one."""
        build = self._builds.get(folder.name)
        if build is None:
            if len(self._builds) >= MAX_WAITING:
                raise NotIndexed(
                    f"{self._index.name} is being indexed at {MAX_WAITING} other commits. Ask again in a minute."
                )
            listeners: list[ProgressSink] = []
            build = _Build(task=asyncio.create_task(self._build(folder, ref, listeners)), listeners=listeners)
            self._builds[folder.name] = build
            build.task.add_done_callback(lambda task: self._end_build(folder, task))
        if progress is not None:
            build.listeners.append(progress)
        try:
            return await asyncio.shield(build.task)
        finally:
            if progress is not None:
                build.listeners.remove(progress)

    def _end_build(self, folder: SideFolder, task: asyncio.Task[_Opened]) -> None:
        del self._builds[folder.name]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._opened[folder.name] = task.result()
        else:
            log.warning("%s at %s was not indexed: %s", self._index.name, folder.commit[:12], error)

    async def _build(self, folder: SideFolder, ref: NamedRef, listeners: list[ProgressSink]) -> _Opened:
        async with self._building:
            lock = await asyncio.to_thread(folder.hold)
            try:
                index = await self._open_complete(folder, ref, listeners)
            except BaseException:
                os.close(lock)
                raise
        return _Opened(folder=folder, index=index, lock=lock)

    async def _open_complete(self, folder: SideFolder, ref: NamedRef, listeners: list[ProgressSink]) -> CodeIndex:
        """Open the generation; if it is incomplete, build it, or wait for another process."""

        def show(progress: Progress) -> None:
            if self._is_closing:
                raise NotIndexed("citebot is shutting down. Ask again in a moment.")
            for listener in [*listeners]:
                listener(progress)

        until = time.monotonic() + _WAIT_SECONDS
        while not await asyncio.to_thread(lambda: folder.is_complete):
            with lock_building(self._index.folder) as is_ours:
                if is_ours:
                    return await self._refresh_beside(folder, ref, show)
            if time.monotonic() > until:
                raise StorageLocked(f"Another citebot is indexing {self._index.name} at {ref.name} still. Ask later.")
            await asyncio.sleep(_LOOK_SECONDS)
        index = await asyncio.to_thread(self._index.open_beside, folder.data, ref.commit)
        if await index.is_current():
            return index
        await index.aclose()  # it is damaged
        with lock_building(self._index.folder) as is_ours:
            if not is_ours:
                raise StorageLocked(f"Another citebot is indexing {self._index.name} at {ref.name}. Ask in a moment.")
            return await self._refresh_beside(folder, ref, show)

    async def _refresh_beside(self, folder: SideFolder, ref: NamedRef, show: ProgressSink) -> CodeIndex:
        """Copy the nearest generation into the folder, and refresh the copy to the commit."""
        await self._seed(folder, ref.commit)
        index = await asyncio.to_thread(self._index.open_beside, folder.data, ref.commit)
        try:
            await index.refresh(progress=show)
            await asyncio.to_thread(folder.note, ref)
        except BaseException:
            await index.aclose()
            raise
        return index

    async def _seed(self, folder: SideFolder, commit: str) -> None:
        source = await self._choose_source(commit)
        try:
            await asyncio.to_thread(_begin_folder, folder, source)
        except StorageError as error:
            log.warning("%s cannot begin as a copy: %s", folder.root, error)
            await asyncio.to_thread(_begin_folder, folder, None)

    async def _choose_source(self, commit: str) -> DataFolder | None:
        """Choose the generation with the fewest files different from a commit; None if there is none."""
        refs = RefList(self._index.repository.git)
        nearest: DataFolder | None = None
        fewest: int | None = None
        with suppress(NotIndexed):
            newest = await self._index.pin()
            nearest = self._index.folder
            fewest = await asyncio.to_thread(refs.count_changes, newest.commit.sha, commit)
        if fewest is not None and fewest <= _FEW_CHANGES:
            return nearest
        for side in await asyncio.to_thread(list_side_folders, self._index.folder):
            if side != SideFolder.of(self._index.folder, side.commit, self._index.provenance) or not side.is_complete:
                continue
            changes = await asyncio.to_thread(refs.count_changes, side.commit, commit)
            if changes is not None and (fewest is None or changes < fewest):
                nearest, fewest = side.data, changes
        return nearest


def _begin_folder(folder: SideFolder, source: DataFolder | None) -> None:
    """Replace the contents of a pinned folder by a copy of an index, whole or not at all; by nothing without one.

    A copy fails if the index is swept meanwhile.
    """
    draft = folder.root / "draft"
    if source is not None:
        copy_index(source.root, draft, links=True)
    folder.data.remove_index()
    if source is not None:  # the file that says that a copy is there comes last
        for path in sorted(draft.iterdir(), key=lambda path: path.suffix == ".sqlite"):
            path.rename(folder.root / path.name)
        draft.rmdir()
