"""Publishes generations: sends new data to the object store, then switches the manifest."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import shutil
import uuid
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import PublicationLost, SegmentsDamaged, SegmentsUnavailable
from indexer.generations.reader import IndexReader
from indexer.git.git_command import decode_output
from indexer.git.repository import Repository
from indexer.git.tags import resolve_commit
from indexer.segments.bucket import Bucket
from indexer.segments.git_packs import write_pack
from indexer.segments.listing import (
    CATALOG_BLOCK,
    FILE_BLOCK,
    Block,
    Bundle,
    GenerationListing,
    History,
    ListedFile,
    PackRange,
    decode_listing,
    encode_listing,
)
from indexer.segments.manifest_store import Manifest, Manifests, find_owner, name_beside
from indexer.store.catalog import Catalog, Generation
from indexer.store.data_folder import DataFolder, copy_index, map_storage_errors
from indexer.types import Drift, IndexStatus, Progress, RefreshReport

if TYPE_CHECKING:
    from indexer.index import CodeIndex

log = logging.getLogger(__name__)

_BUNDLE = 2**23  # bytes; a bundle is sent in one request, and held in memory
_LIVE_SHARE = 0.5  # of a bundle; one with less left in it is given up, and what is left is sent again


class BundlePacker:
    """Packs files consecutively; `files` and `bundles` are the entries of the listing.

    Blocks of the `base`, the previous publication, are not sent again. Keys begin with `prefix`.
    """

    def __init__(self, prefix: str, base: GenerationListing | None) -> None:
        self.files: list[ListedFile] = []
        self.bundles: list[Bundle] = []
        self._prefix = prefix
        self._base = base
        self._numbers: dict[str, int] = {}  # of bundles, by key
        self._blocks = _find_reusable(base) if base is not None else {}
        self._placed: dict[str, Block] = {}
        self._waiting = bytearray()
        self._members: list[str] = []  # digests of the blocks that wait, whose bundle is not known yet

    def pack(self, folder: Path, paths: list[str]) -> Iterator[tuple[str, bytes]]:
        """Pack files, and yield each full bundle with its key; it blocks while it reads."""
        drafts: list[tuple[str, int, int, list[str]]] = []
        for path in paths:
            block_size = CATALOG_BLOCK if path.endswith(".sqlite") else FILE_BLOCK
            digests: list[str] = []
            size = 0
            with (folder / path).open("rb") as file:
                while data := file.read(block_size):
                    size += len(data)
                    digests.append(self._take(data))
                    if len(self._waiting) >= _BUNDLE:
                        yield self._close_bundle()
            drafts.append((path, size, block_size, digests))
        if self._waiting:
            yield self._close_bundle()
        for path, size, block_size, digests in drafts:
            blocks = tuple(self._placed[digest] for digest in digests)
            self.files.append(ListedFile(path=path, size=size, block_size=block_size, blocks=blocks))

    def carry(self, file: ListedFile) -> None:
        """List a file of the base that cannot be read here."""
        if self._base is None:
            raise AssertionError("without a base there is nothing to carry")
        blocks = tuple(self._place(block, self._base.bundles[block.bundle]) for block in file.blocks)
        self.files.append(ListedFile(path=file.path, size=file.size, block_size=file.block_size, blocks=blocks))

    def _take(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if digest in self._placed:
            return digest
        if digest in self._blocks:
            block, bundle = self._blocks[digest]
            self._placed[digest] = self._place(block, bundle)
        else:
            packed = zlib.compress(data, 1)
            self._placed[digest] = Block(digest=digest, bundle=-1, start=len(self._waiting), length=len(packed))
            self._waiting += packed
            self._members.append(digest)
        return digest

    def _place(self, block: Block, bundle: Bundle) -> Block:
        if bundle.key not in self._numbers:
            self._numbers[bundle.key] = len(self.bundles)
            self.bundles.append(bundle)
        return Block(digest=block.digest, bundle=self._numbers[bundle.key], start=block.start, length=block.length)

    def _close_bundle(self) -> tuple[str, bytes]:
        data = bytes(self._waiting)
        bundle = Bundle(key=f"{self._prefix}/{hashlib.sha256(data).hexdigest()}", size=len(data))
        for digest in self._members:
            self._placed[digest] = self._place(self._placed[digest], bundle)
        self._waiting.clear()
        self._members.clear()
        return bundle.key, data


def _find_reusable(base: GenerationListing) -> dict[str, tuple[Block, Bundle]]:
    """Find the reusable blocks of a listing by hash, except in bundles that would be kept for few of them."""
    found = {block.digest: block for file in base.files for block in file.blocks}
    live: dict[int, int] = defaultdict(int)
    for block in found.values():
        live[block.bundle] += block.length
    kept = {number for number, length in live.items() if length >= _LIVE_SHARE * base.bundles[number].size}
    return {digest: (block, base.bundles[block.bundle]) for digest, block in found.items() if block.bundle in kept}


PIN_SECONDS = 60.0
GIT_FOLDER = "repository.git"  # beside the catalog
_CATALOG = "catalog.sqlite"
_PACKS = f"{GIT_FOLDER}/objects/pack"
_SENT_AT_ONCE = 4  # bundles, each of which is in memory
_MAX_PACKS = 16  # git looks for an object in one after the other


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """The upload of a publication: bytes and objects, including the listing; nothing if all existed already."""

    manifest: Manifest
    sent_bytes: int = 0
    sent_objects: int = 0


def name_prefix(repository: str) -> str:
    """Name the place of a repository in the object store, or of one of its commits on a disk: readable, and unique."""
    digest = hashlib.blake2b(repository.encode(), digest_size=6).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]', '-', repository)[:60]}-{digest}"


async def read_listing(store: Bucket, manifest: Manifest) -> bytes:
    """Read the listing of a manifest; `SegmentsDamaged` if it is gone."""
    prefix = name_prefix(find_owner(manifest.repository))
    try:
        return await store.read(f"{prefix}/{manifest.publication}/{manifest.listing}")
    except KeyError as error:
        raise SegmentsDamaged(
            f"The published index of {manifest.repository} is missing in the object store. The local copy is still "
            "served; `citebot index --full` on an indexer publishes everything again."
        ) from error


class Publisher:
    """Publishes the indexes of this machine; `scratch` is its own folder for files to upload.

    A failure or a kill leaves the previous publication untouched; a sweep deletes the objects sent so far.
    """

    def __init__(self, store: Bucket, manifests: Manifests, scratch: Path) -> None:
        self._store = store
        self.manifests = manifests
        self._scratch = scratch

    async def publish(self, index: CodeIndex, *, full: bool = False, beside: bool = False) -> Publication:
        """Publish the newest generation of an index; with `full`, everything is sent again.

        With `beside`, it is a generation at another commit and named after it; objects shared with the newest are not
        sent. Raises `PublicationLost`, `SegmentsUnavailable`, `StorageError` or `RepositoryError`.
        """
        publication = uuid.uuid4().hex
        folder = self._scratch / publication
        try:
            async with hold_pin(self.manifests, index.name, publication) as base:
                listed = None if full or base is None else await self._read_base(base)
                generation, counts = await asyncio.to_thread(_stage, index.folder, folder)
                name = name_beside(index.name, generation.commit.sha) if beside else index.name
                before = await self.manifests.read(name) if beside else base
                if before is not None and listed is not None:
                    made = (before.status.commit, before.status.indexed_at, before.provenance)
                    if made == (generation.commit.sha, generation.indexed_at, generation.provenance):
                        return Publication(manifest=before)
                # Of the generation that is published: the index may have another one meanwhile.
                status = replace(
                    await index.status(),
                    path="",
                    commit=generation.commit.sha,
                    branch=generation.commit.branch,
                    indexed_at=generation.indexed_at,
                    commits_behind=0,
                    skipped=generation.skipped,
                    files=counts["files"],
                    chunks=counts["chunks"],
                    symbols=counts["symbols"],
                )
                manifest = Manifest(
                    repository=name,
                    version=(before.version if before else 0) + 1,
                    publication=publication,
                    listing="",
                    provenance=generation.provenance,
                    status=status,
                )
                return await self._send(index, folder, generation, listed, manifest)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _read_base(self, base: Manifest) -> GenerationListing | None:
        try:
            data = await read_listing(self._store, base)
            return await asyncio.to_thread(decode_listing, data, base.listing)
        except SegmentsDamaged as error:
            log.warning("%s: everything is published anew: %s", base.repository, error)
            return None

    async def _send(
        self,
        index: CodeIndex,
        folder: Path,
        generation: Generation,
        base: GenerationListing | None,
        manifest: Manifest,
    ) -> Publication:
        prefix = f"{name_prefix(index.name)}/{manifest.publication}"
        history = await asyncio.to_thread(_pack_history, index.repository, generation, folder, base)
        packer = BundlePacker(prefix, base)
        sent = await self._send_bundles(packer.pack(folder, await asyncio.to_thread(_list_staged, folder)))
        # Packs of the base that still belong to the history, and were not written again.
        packs = {f"{_PACKS}/pack-{pack.name}.{kind}" for pack in history.packs for kind in ("pack", "idx")}
        carried = packs.difference(file.path for file in packer.files)
        for file in base.files if base is not None else ():
            if file.path in carried:
                packer.carry(file)
        listing = GenerationListing(files=tuple(packer.files), bundles=tuple(packer.bundles), history=history)
        data = await asyncio.to_thread(encode_listing, listing)
        manifest = replace(manifest, listing=hashlib.sha256(data).hexdigest())
        await self._store.put(f"{prefix}/{manifest.listing}", data)
        if not await self.manifests.switch(manifest.repository, manifest.version - 1, manifest):
            raise PublicationLost(
                f"Another process published {index.name} first, or this one took too long. It is tried again with the "
                "next refresh; nothing was lost."
            )
        return Publication(manifest=manifest, sent_bytes=sum(sent) + len(data), sent_objects=len(sent) + 1)

    async def _send_bundles(self, bundles: Iterator[tuple[str, bytes]]) -> list[int]:
        """Send bundles once packed; return their sizes."""
        places = asyncio.Semaphore(_SENT_AT_ONCE)
        sizes = []

        async def send(key: str, data: bytes) -> None:
            try:
                await self._store.put(key, data)
            finally:
                places.release()

        try:
            async with asyncio.TaskGroup() as group:
                while (bundle := await asyncio.to_thread(next, bundles, None)) is not None:
                    await places.acquire()
                    sizes.append(len(bundle[1]))
                    group.create_task(send(*bundle))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None  # the first is why the others were given up
        return sizes


@asynccontextmanager
async def hold_pin(manifests: Manifests, repository: str, holder: str) -> AsyncIterator[Manifest | None]:
    """Pin the newest version of a repository while the block runs; a switch itself checks whether the pin held."""

    async def renew() -> None:
        is_held = True
        while is_held:
            await asyncio.sleep(PIN_SECONDS / 3)
            try:
                is_held = await manifests.renew(holder, PIN_SECONDS)
            except SegmentsUnavailable as error:
                log.warning("%s: a pin is renewed as soon as that is possible: %s", repository, error)

    pinned = await manifests.pin(repository, holder, PIN_SECONDS)
    renewing = asyncio.create_task(renew())
    try:
        yield pinned
    finally:
        renewing.cancel()
        await asyncio.wait({renewing})
        try:
            await manifests.unpin(holder)
        except SegmentsUnavailable as error:
            log.warning("%s: a pin is left to run out: %s", repository, error)


def _stage(source: DataFolder, folder: Path) -> tuple[Generation, dict[str, int]]:
    """Copy the newest generation aside, so that it can be refreshed again; return it with its counts."""
    copy_index(source.root, folder)
    catalog = Catalog(DataFolder(folder).catalog)
    try:
        generation = catalog.current()
        if generation is None:
            raise PublicationLost(f"Nothing is indexed in {source.root} yet, so nothing can be published.")
        return generation, catalog.count_rows(generation.id)
    finally:
        catalog.close()


def _list_staged(folder: Path) -> list[str]:
    """List the files to publish, without those of SQLite and git next to them."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if path == _CATALOG or path.startswith(("generations/", f"{_PACKS}/"))]


def _pack_history(
    repository: Repository, generation: Generation, folder: Path, base: GenerationListing | None
) -> History:
    """Pack the commits that the base lacks; if there are many packs, combine all but the first."""
    git, sha = repository.git, generation.commit.sha
    lines = git.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags").splitlines()
    tags = {name: target for target, _, name in (decode_output(line).partition(" ") for line in lines)}
    boundary = tuple(sorted(repository.history.read_shallow_commits()))
    old = base.history if base is not None else None
    if old is not None and (boundary != tuple(sorted(old.shallow)) or not resolve_commit(git, old.sha)):
        old = None
    since, packs, known = "", [], []
    if old is not None and len(old.packs) < _MAX_PACKS:
        since, packs = old.sha, list(old.packs)
        known = [old.sha, *(tag for name, tag in tags.items() if old.refs.get(name) == tag)]
    elif old is not None and resolve_commit(git, old.packs[1].since):
        since, packs = old.packs[1].since, list(old.packs[:1])
        known = [since]  # the targets of tags were in the packs that are made again
    with map_storage_errors(folder / _PACKS):
        (folder / _PACKS).mkdir(parents=True)
    name = write_pack(git, folder / _PACKS, [sha, *tags.values()], known)
    if name:
        packs = [each for each in packs if each.name != name]
        packs.append(PackRange(name=name, since=since))
    return History(branch=generation.commit.branch, sha=sha, refs=tags, packs=tuple(packs), shallow=boundary)


class PublishedIndex:
    """A repository's index on this machine.

    An unpublished index counts as missing: the next refresh makes up for it.
    """

    def __init__(self, index: CodeIndex, publisher: Publisher) -> None:
        self._index = index
        self._publisher = publisher

    @property
    def name(self) -> str:
        """The repository's name for people."""
        return self._index.name

    @property
    def web_url(self) -> str | None:
        """The project's page, which links lead to."""
        return self._index.web_url

    async def is_current(self) -> bool:
        """Whether the commit of the repository's ref is indexed here and published."""
        if not await self._index.is_current():
            return False
        manifest, status = await self._publisher.manifests.read(self.name), await self._index.status()
        if manifest is None:
            return False
        return (manifest.status.commit, manifest.status.indexed_at) == (status.commit, status.indexed_at)

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index and publish the ref; with `full` everything is indexed and sent again."""
        report = await self._index.refresh(full=full, progress=progress)
        await self._publisher.publish(self._index, full=full)
        return report

    async def pin(self) -> IndexReader:
        """Pin the local index."""
        return await self._index.pin()

    async def status(self) -> IndexStatus:
        """Describe the local index; until it is published, as if there were none."""
        status = await self._index.status()
        manifest = await self._publisher.manifests.read(self.name)
        if manifest is not None and manifest.status.commit == status.commit:
            return status
        return manifest.status if manifest is not None else replace(status, commit=None)

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """Find out what changed since a commit, in general and of the paths."""
        return await self._index.drift(commit, paths)

    async def sweep(self) -> None:
        """Delete old generations on this machine."""
        await self._index.sweep()
