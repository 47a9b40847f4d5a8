"""The listing of a published generation: its files in blocks, each named by its hash, and their places in bundles.

Blocks are as small as a page of the catalog, because one changed file changes pages all over it:
blocks of 64 KB would send three quarters of a catalog again for a push of nine files, where the
pages themselves are a tenth of it. To avoid a thousand requests, the new blocks of a publication
are grouped in a few objects, its bundles.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indexer.errors import SegmentsDamaged
from indexer.text.linear_patterns import Pattern, compile_pattern

CATALOG_BLOCK = 4096  # bytes: a page of SQLite
FILE_BLOCK = 2**18  # bytes, of files that are written once

_FORMAT = 1
_LONGEST = 2**28  # bytes of a listing, unpacked
_MAX_BYTES = 2**40  # of a generation
_DIGEST = 64  # hexadecimal digits
# Only these files are written into a generation, whatever a listing contains.
_PATH = re.compile(
    r"catalog\.sqlite|generations/\d{1,18}/[a-z0-9]{1,64}\.npy|repository\.git/objects/pack/pack-[0-9a-f]{40,64}\.(?:pack|idx)"
)
_REF = re.compile(r"refs/(?:heads|tags)/[^\x00-\x20\x7f]{1,1000}")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KEY = compile_pattern(r"[A-Za-z0-9_-]{1,73}/[0-9a-f]{32}/[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """The place of a block: its bundle, by number, and its packed offset there; `digest` is of the content."""

    digest: str
    bundle: int
    start: int
    length: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedFile:
    """A file in blocks of one size; the last may be shorter."""

    path: str
    size: int
    block_size: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """An object of blocks."""

    key: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PackRange:
    """A pack of git's objects: those up to a commit that `since` lacks; the first pack has no `since`."""

    name: str
    since: str


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The git side of a generation: its branch and tags, and the packs of their commits."""

    branch: str | None
    sha: str
    refs: Mapping[str, str]
    packs: tuple[PackRange, ...]
    shallow: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationListing:
    """The files of a generation, the bundles of their blocks, and git's data besides its packs."""

    files: tuple[ListedFile, ...]
    bundles: tuple[Bundle, ...]
    history: History

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def unpack_block(packed: bytes, block: Block, most: int) -> bytes:
    """Unpack a block and compare it with its hash; `SegmentsDamaged` if they differ."""
    try:
        data = zlib.decompressobj().decompress(packed, most)
    except zlib.error:
        data = b""
    if hashlib.sha256(data).hexdigest() != block.digest:
        raise SegmentsDamaged(
            "A block of the published index is not what its hash says. The local copy is still served; `citebot "
            "index --full` on an indexer publishes everything again."
        )
    return data


def encode_listing(listing: GenerationListing) -> bytes:
    """Encode a listing for storage."""
    history = listing.history
    fields = {
        "format": _FORMAT,
        "bundles": [[bundle.key, bundle.size] for bundle in listing.bundles],
        "files": [
            {
                "path": file.path,
                "size": file.size,
                "block": file.block_size,
                "digests": "".join(block.digest for block in file.blocks),
                "places": [[block.bundle, block.start, block.length] for block in file.blocks],
            }
            for file in listing.files
        ],
        "history": {
            "branch": history.branch,
            "sha": history.sha,
            "refs": dict(history.refs),
            "packs": [[pack.name, pack.since] for pack in history.packs],
            "shallow": history.shallow,
        },
    }
    return zlib.compress(json.dumps(fields, separators=(",", ":")).encode())


def decode_listing(data: bytes, digest: str) -> GenerationListing:
    """Read a listing with a given hash; `SegmentsDamaged` if it has another one, or invalid contents."""
    try:
        return _parse_listing(_unpack_listing(data, digest))
    except (ValueError, KeyError, TypeError, zlib.error, RecursionError) as error:
        raise SegmentsDamaged(
            f"The listing of the published index cannot be used ({error}). What is here is still served; "
            "`citebot index --full` where indexes are built publishes everything again."
        ) from error


def _unpack_listing(data: bytes, digest: str) -> Mapping[str, Any]:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("it is not what its hash says")
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(data, _LONGEST)
    if not unpacking.eof:
        raise ValueError("it is too long")
    fields: Mapping[str, Any] = json.loads(text)
    if fields["format"] != _FORMAT:
        raise ValueError(f"it is of format {fields['format']}, this version reads {_FORMAT}")
    return fields


def _parse_listing(fields: Mapping[str, Any]) -> GenerationListing:
    bundles = tuple(Bundle(key=_match(_KEY, key), size=int(size)) for key, size in fields["bundles"])
    files = tuple(_parse_file(each, bundles) for each in fields["files"])
    listing = GenerationListing(files=files, bundles=bundles, history=_parse_history(fields["history"]))
    if listing.size > _MAX_BYTES or len({file.path for file in files}) < len(files):
        raise ValueError("its files are too large, or listed twice")
    return listing


def _parse_file(fields: Mapping[str, Any], bundles: tuple[Bundle, ...]) -> ListedFile:
    size, block_size, places, digests = fields["size"], fields["block"], fields["places"], fields["digests"]
    if block_size not in {CATALOG_BLOCK, FILE_BLOCK} or not 0 <= size <= _MAX_BYTES:
        raise ValueError("a size is out of range")
    if not len(places) == -(-size // block_size) == len(digests) / _DIGEST:
        raise ValueError("a file has too few blocks, or too many")
    blocks = tuple(
        Block(digest=digests[place * _DIGEST : (place + 1) * _DIGEST], bundle=bundle, start=start, length=length)
        for place, (bundle, start, length) in enumerate(places)
    )
    for block in blocks:
        if not (0 <= block.bundle < len(bundles) and block.start >= 0 and block.length > 0):
            raise ValueError("a block is nowhere")
        if block.start + block.length > bundles[block.bundle].size:
            raise ValueError("a block is past the end of its bundle")
    return ListedFile(path=_match(_PATH, fields["path"]), size=size, block_size=block_size, blocks=blocks)


def _parse_history(fields: Mapping[str, Any]) -> History:
    branch = fields["branch"]
    return History(
        branch=None if branch is None else _match(_REF, f"refs/heads/{branch}").removeprefix("refs/heads/"),
        sha=_match(_SHA, fields["sha"]),
        refs={_match(_REF, name): _match(_SHA, sha) for name, sha in fields["refs"].items()},
        packs=tuple(PackRange(name=_match(_SHA, name), since=since) for name, since in fields["packs"]),
        shallow=tuple(_match(_SHA, sha) for sha in fields["shallow"]),
    )


def _match(pattern: re.Pattern[str] | Pattern, text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text[:80]!r} may not stand in it")
    return text
