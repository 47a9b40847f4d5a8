"""The published generations on this disk, up to a limit; the least recently used are deleted first."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from indexer.errors import SegmentsDamaged
from indexer.generations.reader import IndexReader
from indexer.segments.block_assembly import Assembled, LocalCopy
from indexer.segments.listing import GenerationListing, decode_listing
from indexer.segments.manifest_store import Manifest
from indexer.segments.opened_generation import (
    LOCK,
    OpenedGeneration,
    ReadingParts,
)
from indexer.segments.publisher import name_prefix
from indexer.store.data_folder import map_storage_errors, measure_folder
from indexer.store.file_locks import lock_file

log = logging.getLogger(__name__)

_LISTING = "listing"
_DRAFT = ".draft"
_NAME = re.compile(r"(?P<version>\d{1,18})-(?P<digest>[0-9a-f]{64})(?P<draft>\.draft)?")


@dataclass(kw_only=True, slots=True)
class CacheCounts:
    """Hits and misses of the cache, in indexes and bytes; requests to the object store."""

    hits: int = 0
    misses: int = 0
    found_bytes: int = 0
    fetched_bytes: int = 0
    requests: int = 0


class LocalGenerations:
    """Folders by repository and version; the open ones by repository, the last used at the end.

    Open generations, and the one needed now, may exceed `most_bytes`. Its methods block.
    """

    def __init__(self, root: Path, most_bytes: int) -> None:
        self.counts = CacheCounts()
        self._root = root
        self._most_bytes = most_bytes
        self._opened: OrderedDict[str, OpenedGeneration] = OrderedDict()
        self._replaced: list[OpenedGeneration] = []
        self._lock = RLock()

    def get(self, repository: str) -> OpenedGeneration | None:
        """Return the open generation of a repository."""
        return self._opened.get(repository)

    def hold(self, repository: str, parts: ReadingParts) -> IndexReader | None:
        """Hold the open generation of a repository, and record its use; None if none is open."""
        with self._lock:
            opened = self._opened.get(repository)
            if opened is None:
                return None
            self._opened.move_to_end(repository)
            with suppress(OSError):  # only the order of deleting depends on it
                (opened.folder / LOCK).touch()
            return opened.make_reader(parts)

    def put(self, repository: str, opened: OpenedGeneration) -> None:
        """Serve a generation from now on; readers of the previous one continue with it. Other versions are deleted."""
        with self._lock:
            if (before := self._opened.pop(repository, None)) is not None:
                self._replaced.append(before)
            self._opened[repository] = opened
        self.close_unread()
        for path in self._list_folders(repository):
            _delete_unused(path)

    def close_unread(self) -> None:
        """Close and delete replaced generations that nobody reads any more."""
        with self._lock:
            for opened in [each for each in self._replaced if not each.is_read]:
                self._replaced.remove(opened)
                opened.close()
                _delete_unused(opened.folder)

    def close_idle(self, repository: str) -> None:
        """Close the generation of a repository, unless somebody reads it; the files stay."""
        opened = self.get(repository)
        if opened is not None:
            self._close_folder(opened.folder)

    def close(self) -> None:
        """Close everything; the files stay."""
        with self._lock:
            for opened in (*self._opened.values(), *self._replaced):
                opened.close()
            self._opened.clear()
            self._replaced.clear()

    def folder(self, manifest: Manifest) -> Path:
        """Name the folder of a version."""
        return self._root / name_prefix(manifest.repository) / f"{manifest.version}-{manifest.listing}"

    def draft(self, manifest: Manifest) -> Path:
        """Name the folder for assembling a version."""
        folder = self.folder(manifest)
        return folder.with_name(folder.name + _DRAFT)

    def lock(self, repository: str) -> int | None:
        """Lock a repository against downloads by other processes; None while one downloads."""
        folder = self._root / name_prefix(repository)
        with map_storage_errors(folder / _LISTING):
            folder.mkdir(parents=True, exist_ok=True)
            return lock_file(folder / LOCK)

    def begin(self, manifest: Manifest, listing: bytes) -> Path:
        """Create the folder in which a version is assembled, or resume an earlier attempt."""
        draft = self.draft(manifest)
        with map_storage_errors(draft / _LISTING):
            draft.mkdir(parents=True, exist_ok=True)
            (draft / _LISTING).write_bytes(listing)
        return draft

    def finish(self, manifest: Manifest, assembled: Assembled) -> Path:
        """Make a draft the folder of its version."""
        draft, folder = self.draft(manifest), self.folder(manifest)
        with map_storage_errors(draft / _LISTING):
            draft.rename(folder)
        self.counts.found_bytes += assembled.found_bytes
        self.counts.fetched_bytes += assembled.fetched_bytes
        self.counts.requests += assembled.requests
        return folder

    def doubt(self, manifest: Manifest) -> None:
        """Make a damaged folder a draft again: each block will be checked."""
        folder, draft = self.folder(manifest), self.draft(manifest)
        with map_storage_errors(draft / _LISTING):
            if folder.exists():
                shutil.rmtree(draft, ignore_errors=True)
                folder.rename(draft)

    def find_copies(self, repository: str) -> list[LocalCopy]:
        """Find the local copies of a repository, whole folders first, after deleting unused ones."""
        self.close_unread()
        folders = sorted(self._list_folders(repository), key=lambda path: path.name.endswith(_DRAFT))
        return [
            LocalCopy(folder=path, listing=listing, is_whole=not path.name.endswith(_DRAFT))
            for path in folders
            if (listing := _read_listing(path)) is not None
        ]

    def make_room(self, repository: str, needed: int) -> None:
        """Delete the least recently used until the bytes fit, except open ones and this one."""
        size = self.measure()
        own = self._root / name_prefix(repository)
        folders = [path for path in self._root.glob("*/*") if _NAME.fullmatch(path.name) and path.parent != own]
        for path in sorted(folders, key=_read_last_use):
            if size + needed <= self._most_bytes:
                return
            self._close_folder(path)
            _delete_unused(path)
            size = self.measure()
        if size + needed > self._most_bytes:
            log.warning("The indexes that are in use need more than the %d bytes that they may take.", self._most_bytes)

    def _close_folder(self, folder: Path) -> None:
        with self._lock:
            for repository, opened in list(self._opened.items()):
                if opened.folder == folder and not opened.is_read:
                    del self._opened[repository]
                    opened.close()

    def _list_folders(self, repository: str) -> list[Path]:
        parent = self._root / name_prefix(repository)
        return [path for path in parent.iterdir() if _NAME.fullmatch(path.name)] if parent.is_dir() else []

    def measure(self) -> int:
        """Return the bytes on disk."""
        return measure_folder(self._root)


def read_version(folder: Path) -> int:
    """Return the version in a folder's name."""
    return int(folder.name.partition("-")[0])


def _read_last_use(folder: Path) -> float:
    lock = folder / LOCK
    return lock.stat().st_mtime if lock.exists() else 0.0


def _delete_unused(folder: Path) -> None:
    """Delete a folder unless a process reads it."""
    try:
        lock = lock_file(folder / LOCK)
    except OSError as error:  # a full disk has no room for a lock where none was; another attempt follows
        log.warning("%s is not deleted yet: %s", folder, error)
        return
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _read_listing(folder: Path) -> GenerationListing | None:
    match = _NAME.fullmatch(folder.name)
    try:
        return decode_listing((folder / _LISTING).read_bytes(), match["digest"]) if match else None
    except (OSError, SegmentsDamaged) as error:
        log.info("%s is of no use: %s", folder, error)
        return None
