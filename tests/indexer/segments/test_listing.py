"""A listing is read as it was written, and one that an attacker wrote leads nowhere."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import pytest

from indexer.errors import SegmentsDamaged
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
    unpack_block,
)

KEY = f"shop-0123/{'a' * 32}/{'b' * 64}"
PAGE = b"page" * 1024
PACKED = zlib.compress(PAGE, 1)
HISTORY = History(
    branch="main",
    sha="c" * 40,
    refs={"refs/tags/v1": "d" * 40},
    packs=(PackRange(name="e" * 40, since=""),),
    shallow=("f" * 40,),
)


def make_block(start: int) -> Block:
    return Block(digest=hashlib.sha256(bytes([start])).hexdigest(), bundle=0, start=start, length=10)


LISTING = GenerationListing(
    files=(
        ListedFile(path="catalog.sqlite", size=5000, block_size=CATALOG_BLOCK, blocks=(make_block(0), make_block(10))),
        ListedFile(path="generations/3/overview.npy", size=7, block_size=FILE_BLOCK, blocks=(make_block(20),)),
        ListedFile(path=f"repository.git/objects/pack/pack-{'e' * 40}.pack", size=0, block_size=FILE_BLOCK, blocks=()),
    ),
    bundles=(Bundle(key=KEY, size=100),),
    history=HISTORY,
)


def read_back(data: bytes) -> GenerationListing:
    return decode_listing(data, hashlib.sha256(data).hexdigest())


def alter(change: dict[str, Any]) -> bytes:
    """Write the listing with something else at a path of keys."""
    fields = json.loads(zlib.decompress(encode_listing(LISTING)))
    for path, value in change.items():
        *above, last = path.split(".")
        place: Any = fields
        for step in above:
            place = place[int(step) if step.isdigit() else step]
        place[int(last) if last.isdigit() else last] = value
    return zlib.compress(json.dumps(fields).encode())


def test_a_listing_is_read_as_it_was_written() -> None:
    assert read_back(encode_listing(LISTING)) == LISTING


def test_a_listing_with_another_hash_is_refused() -> None:
    data = encode_listing(LISTING)

    with pytest.raises(SegmentsDamaged, match="not what its hash says"):
        decode_listing(data + b"x", hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize(
    "path",
    [
        "../catalog.sqlite", "/etc/passwd", "generations/3/a/b.npy", "listing",
        "repository.git/config", "generations/3/x.npy\n", "in-use.lock",
        "repository.git/objects/pack/pack-../../config", "catalog.sqlite-wal", "",
    ],
)  # fmt: skip
def test_no_file_is_written_but_those_of_a_generation(path: str) -> None:
    with pytest.raises(SegmentsDamaged, match="may not stand in it"):
        read_back(alter({"files.0.path": path}))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"files.0.size": -1},
        {"files.0.size": 4096},
        {"files.0.block": 1},
        {"files.0.places": []},
        {"files.0.digests": "00"},
        {"files.0.places.0": [1, 0, 10]},
        {"files.0.places.0": [0, 95, 10]},
        {"files.0.places.0": [0, 0]},
        {"files.1.path": "catalog.sqlite"},
        {"bundles.0": [KEY, "x"]},
        {"history.sha": "HEAD"},
        {"history.branch": "a\nb"},
        {"history.refs": {"refs/tags/x\nabc": "d" * 40}},
        {"history.refs": {"refs/tags/x": "../x"}},
        {"history.packs": [["../../x", ""]]},
        {"history": None},
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SegmentsDamaged):
        read_back(alter(change))


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "null", '{"format": 1}', "\ud800", "{"])
def test_what_is_no_listing_is_refused(text: str) -> None:
    with pytest.raises(SegmentsDamaged):
        read_back(zlib.compress(text.encode("utf-8", "surrogatepass")))


@pytest.mark.exhaustive
def test_a_listing_that_unpacks_to_gigabytes_is_refused() -> None:
    packer = zlib.compressobj()
    bomb = b"".join(packer.compress(bytes(2**24)) for _ in range(20)) + packer.flush()

    with pytest.raises(SegmentsDamaged, match="too long"):
        read_back(bomb)


def test_a_block_is_unpacked_as_it_was_packed() -> None:
    block = Block(digest=hashlib.sha256(PAGE).hexdigest(), bundle=0, start=0, length=len(PACKED))

    assert unpack_block(PACKED, block, len(PAGE)) == PAGE


@pytest.mark.parametrize("packed", [PACKED[:-5], b"", b"x" + PACKED, zlib.compress(bytes(2**20), 1)])
def test_a_block_that_is_not_what_its_hash_says_is_refused(packed: bytes) -> None:
    block = Block(digest=hashlib.sha256(PAGE).hexdigest(), bundle=0, start=0, length=len(packed))

    with pytest.raises(SegmentsDamaged, match="not what its hash says"):
        unpack_block(packed, block, len(PAGE))
