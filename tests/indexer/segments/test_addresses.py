"""Addresses of object stores and what is wrong with them, in sentences that show no key."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from indexer.errors import SegmentsUnavailable
from indexer.segments.bucket import open_bucket
from tests.fakes.s3 import BUCKET, FakeS3, serve_s3


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeS3]:
    async with serve_s3() as served:
        yield served


@pytest.mark.parametrize(
    "url", ["", "bucket", "ftp://bucket", "https://bucket", "s3:/bucket", "S3://bucket", "s3://key:secret@bucket"]
)
def test_an_address_of_another_kind_is_a_sentence(url: str) -> None:
    with pytest.raises(SegmentsUnavailable, match=r"Write s3://BUCKET/PREFIX"):
        open_bucket(url)


@pytest.mark.parametrize("url", ["s3://", "gs://", "az://", "file://"])
def test_an_address_without_a_bucket_is_a_sentence(url: str) -> None:
    with pytest.raises(SegmentsUnavailable):
        open_bucket(url)


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)

    with pytest.raises(SegmentsUnavailable, match=r"needs the extra `cluster`.* Install it: .*\[cluster\]"):
        open_bucket("s3://bucket")


@pytest.mark.parametrize(("status", "sentence"), [(403, "denies access"), (507, "is full"), (503, "cannot be used")])
async def test_what_a_store_refuses_is_a_sentence(fake: FakeS3, status: int, sentence: str) -> None:
    fake.always = status
    store = open_bucket(f"s3://{BUCKET}", options=fake.options)

    for work in (store.put("a", b""), store.read("a"), store.read("a", 1, 2), store.delete(["a"])):
        with pytest.raises(SegmentsUnavailable, match=sentence):
            await work
    with pytest.raises(SegmentsUnavailable, match=sentence):
        assert [each async for each in store.list("a")]


async def test_a_missing_bucket_is_a_sentence(fake: FakeS3) -> None:
    store = open_bucket("s3://other", options=fake.options)

    with pytest.raises(SegmentsUnavailable, match="does not exist"):
        await store.put("a", b"")
    with pytest.raises(SegmentsUnavailable, match="does not exist"):
        await store.read("a")


async def test_a_store_that_is_busy_for_a_moment_is_asked_again(fake: FakeS3) -> None:
    fake.refuse = [503]

    assert await open_bucket(f"s3://{BUCKET}", options=fake.options).put("a", b"1")


async def test_a_store_that_cannot_be_reached_is_a_sentence_without_keys(fake: FakeS3) -> None:
    options = fake.options
    options["config"]["endpoint"] = "http://127.0.0.1:9"
    store = open_bucket(f"s3://{BUCKET}", options=options)

    with pytest.raises(SegmentsUnavailable, match="cannot be used") as caught:
        await store.put("a", b"")
    assert "secret" not in str(caught.value)


async def test_a_folder_that_cannot_be_written_is_a_sentence() -> None:
    with pytest.raises(SegmentsUnavailable):
        await open_bucket("file:///proc/citebot").put("a", b"")
