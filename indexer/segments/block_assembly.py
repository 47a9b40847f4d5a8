"""Assembles the files of a generation from this disk and the object store."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from indexer.errors import SegmentsDamaged
from indexer.segments.bucket import Bucket
from indexer.segments.listing import Block, GenerationListing, ListedFile, unpack_block
from indexer.store.data_folder import map_storage_errors

_READ_AT_ONCE = 8  # spans
_GAP = 2**15  # bytes between two blocks that are read together rather than apart
_SPAN = 2**22  # bytes; what is read together is in memory

Report = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalCopy:
    """A folder with the files of a listing: complete, or from an interrupted attempt."""

    folder: Path
    listing: GenerationListing
    is_whole: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembled:
    """The sources of a generation's bytes; `requests` counts those sent to the object store."""

    found_bytes: int
    fetched_bytes: int
    requests: int


@dataclass(frozen=True, slots=True)
class _Place:
    """The target of a block."""

    file: ListedFile
    number: int

    @property
    def start(self) -> int:
        return self.number * self.file.block_size

    @property
    def length(self) -> int:
        return min(self.file.block_size, self.file.size - self.start)


@dataclass(slots=True)
class _Span:
    """Bytes of a bundle to read together, and their blocks."""

    key: str
    start: int
    end: int
    blocks: list[Block] = field(default_factory=list)


async def assemble(
    listing: GenerationListing, store: Bucket, folder: Path, copies: Sequence[LocalCopy], *, report: Report
) -> Assembled:
    """Write the files of a listing into a folder, which may have some from an interrupted attempt.

    Each block is compared with its hash, wherever it comes from. `report` gets the bytes done, and
    in total. Raises `SegmentsDamaged`, `SegmentsUnavailable` or `StorageUnwritable`; the next
    attempt reuses the written files.
    """
    missing = await asyncio.to_thread(_fill_from_disk, listing, folder, copies)
    spans = list(_make_spans(listing, missing))
    lacking = sum(place.length for places in missing.values() for place in places)
    found, fetched = listing.size - lacking, 0
    slots = asyncio.Semaphore(_READ_AT_ONCE)

    async def fetch(span: _Span) -> None:
        nonlocal fetched
        async with slots:
            try:
                data = await store.read(span.key, span.start, span.end)
            except KeyError as error:
                raise SegmentsDamaged(
                    "A part of the published index is missing in the object store. The local copy is still served; "
                    "`citebot index --full` on an indexer publishes everything again."
                ) from error
            await asyncio.to_thread(_write_span, folder, span, data, missing)
            fetched += len(data)
            report(found + sum(block.length for block in span.blocks), listing.size)

    try:
        async with asyncio.TaskGroup() as group:
            for span in spans:
                group.create_task(fetch(span))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None  # the first is why the others were given up
    return Assembled(found_bytes=found, fetched_bytes=fetched, requests=len(spans))


def estimate_growth(listing: GenerationListing, copies: Sequence[LocalCopy]) -> int:
    """Return how many bytes the files take beyond unchanged local copies."""
    known = {_name_content(file) for copy in copies if copy.is_whole for file in copy.listing.files}
    return sum(file.size for file in listing.files if _name_content(file) not in known)


def _fill_from_disk(
    listing: GenerationListing, folder: Path, copies: Sequence[LocalCopy]
) -> Mapping[str, Sequence[_Place]]:
    """Take existing blocks from this disk, and return the places of the missing ones, by hash."""
    missing: dict[str, list[_Place]] = defaultdict(list)
    with map_storage_errors(folder / "catalog.sqlite"), closing(_DiskBlocks(copies)) as blocks:
        for file in listing.files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not blocks.link(file, target):
                for place in _fill_file(file, target, blocks):
                    missing[place.file.blocks[place.number].digest].append(place)
    return missing


def _fill_file(file: ListedFile, target: Path, blocks: _DiskBlocks) -> Iterator[_Place]:
    """Write the blocks of a file that exist on this disk, and yield the places of the others."""
    is_begun = target.exists()
    with target.open("r+b" if is_begun else "w+b") as out:
        out.truncate(file.size)
        for number, block in enumerate(file.blocks):
            place = _Place(file, number)
            if is_begun and _is_there(out.fileno(), place, block):
                continue
            data = blocks.read(block, place.length)
            if data is None:
                yield place
            else:
                os.pwrite(out.fileno(), data, place.start)


def _is_there(descriptor: int, place: _Place, block: Block) -> bool:
    return hashlib.sha256(os.pread(descriptor, place.length, place.start)).hexdigest() == block.digest


class _DiskBlocks:
    """The blocks of local copies by hash; each is compared with it when it is read."""

    def __init__(self, copies: Sequence[LocalCopy]) -> None:
        self._stack = ExitStack()
        self._descriptors: dict[Path, int] = {}
        self._places: dict[str, tuple[Path, int]] = {}
        self._files: dict[tuple[str, tuple[str, ...]], Path] = {}
        for copy in copies:
            for file in copy.listing.files:
                path = copy.folder / file.path
                if copy.is_whole:
                    self._files[_name_content(file)] = path
                for number, block in enumerate(file.blocks):
                    self._places.setdefault(block.digest, (path, number * file.block_size))

    def close(self) -> None:
        """Close the open files."""
        self._stack.close()

    def link(self, file: ListedFile, target: Path) -> bool:
        """Give a whole file a second name, except the catalog, which SQLite may write to."""
        source = self._files.get(_name_content(file))
        if source is None or target.exists() or file.path.endswith(".sqlite"):
            return False
        with suppress(OSError):  # it is gone, or the disk has no links
            os.link(source, target)
            return True
        return False

    def read(self, block: Block, length: int) -> bytes | None:
        """Read a block; None if it is missing or altered."""
        if (known := self._places.get(block.digest)) is None:
            return None
        path, start = known
        if path not in self._descriptors:
            try:
                self._descriptors[path] = self._stack.enter_context(path.open("rb")).fileno()
            except FileNotFoundError:
                return None
        data = os.pread(self._descriptors[path], length, start)
        return data if hashlib.sha256(data).hexdigest() == block.digest else None


def _name_content(file: ListedFile) -> tuple[str, tuple[str, ...]]:
    return file.path.rpartition("/")[2], tuple(block.digest for block in file.blocks)


def _make_spans(listing: GenerationListing, missing: Mapping[str, Sequence[_Place]]) -> Iterator[_Span]:
    """Join neighbouring blocks of a bundle."""
    wanted = {digest: places[0].file.blocks[places[0].number] for digest, places in missing.items()}
    span: _Span | None = None
    for block in sorted(wanted.values(), key=lambda block: (block.bundle, block.start)):
        key, end = listing.bundles[block.bundle].key, block.start + block.length
        if span is None or key != span.key or block.start - span.end > _GAP or end - span.start > _SPAN:
            if span is not None:
                yield span
            span = _Span(key, block.start, end)
        span.end = max(span.end, end)
        span.blocks.append(block)
    if span is not None:
        yield span


def _write_span(folder: Path, span: _Span, data: bytes, missing: Mapping[str, Sequence[_Place]]) -> None:
    with map_storage_errors(folder / "catalog.sqlite"), ExitStack() as stack:
        opened: dict[str, int] = {}
        for block in span.blocks:
            start = block.start - span.start
            for place in missing[block.digest]:
                content = unpack_block(data[start : start + block.length], block, place.length)
                if place.file.path not in opened:
                    opened[place.file.path] = stack.enter_context((folder / place.file.path).open("r+b")).fileno()
                os.pwrite(opened[place.file.path], content, place.start)
