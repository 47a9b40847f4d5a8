"""The contract of object stores."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from indexer.segments.bucket import Bucket


async def test_what_is_written_is_read_back_whole_and_in_ranges(any_store: Bucket) -> None:
    assert await any_store.put("shop/1/a", b"0123456789")

    assert await any_store.read("shop/1/a") == b"0123456789"
    assert await any_store.read("shop/1/a", 2, 5) == b"234"


async def test_an_object_that_is_there_stays_as_it_is(any_store: Bucket) -> None:
    await any_store.put("a", b"first")

    assert not await any_store.put("a", b"second")
    assert await any_store.read("a") == b"first"


async def test_of_many_who_write_at_once_one_does(any_store: Bucket) -> None:
    wrote = await asyncio.gather(*(any_store.put("a", bytes([number])) for number in range(8)))

    assert sum(wrote) == 1
    assert await any_store.read("a") == bytes([wrote.index(True)])


async def test_a_missing_object_is_a_key_error(any_store: Bucket) -> None:
    await any_store.put("other", b"")

    with pytest.raises(KeyError):
        await any_store.read("missing")
    with pytest.raises(KeyError):
        await any_store.read("missing", 0, 10)


async def test_all_below_a_prefix_is_listed_and_nothing_beside_it(any_store: Bucket) -> None:
    names = {"shop/1/a": b"a", "shop/1/b": b"bb", "shop/2/c": b"ccc", "shop-2/1/a": b"", "shopping": b""}
    for name, data in names.items():
        await any_store.put(name, data)

    listed = {each.key: each async for each in any_store.list("shop")}

    assert {key: each.size for key, each in listed.items()} == {"shop/1/a": 1, "shop/1/b": 2, "shop/2/c": 3}
    times = [each.modified_at for each in listed.values()]
    assert max(times) - min(times) < timedelta(minutes=1)


async def test_nothing_is_below_a_prefix_that_nobody_used(any_store: Bucket) -> None:
    assert [each async for each in any_store.list("nothing")] == []


async def test_what_is_deleted_is_gone_and_what_was_gone_is_no_error(any_store: Bucket) -> None:
    await any_store.put("a", b"1")
    await any_store.put("b", b"2")

    await any_store.delete(["a", "never"])

    with pytest.raises(KeyError):
        await any_store.read("a")
    assert await any_store.read("b") == b"2"
