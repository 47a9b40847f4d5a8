"""Cuts the files of a generation into blocks, and puts those that were not published before into bundles."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from indexer.segments.listing import CATALOG_BLOCK, FILE_BLOCK, Block, Bundle, GenerationListing, ListedFile, pack_block

_BUNDLE = 2**23  # bytes; a bundle is sent in one request, and held in memory
_LIVE_SHARE = 0.5  # of a bundle; one with less left in it is given up, and what is left is sent again


class BundlePacker:
    """Packs files one after the other; `files` and `bundles` are the entries of the listing.

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
        """Pack files, and yield each bundle, with its key, as soon as it is full; it blocks while it reads."""
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
        """List a file of the base that is not here to be read."""
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
            packed = pack_block(data)
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
    """Find the blocks of a listing by hash, except those of bundles that would be kept for little of them."""
    found = {block.digest: block for file in base.files for block in file.blocks}
    live: dict[int, int] = defaultdict(int)
    for block in found.values():
        live[block.bundle] += block.length
    kept = {number for number, length in live.items() if length >= _LIVE_SHARE * base.bundles[number].size}
    return {digest: (block, base.bundles[block.bundle]) for digest, block in found.items() if block.bundle in kept}
