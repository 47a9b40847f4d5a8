"""Sweeping the object store spares whatever is served, read, or about to be published."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from indexer.errors import PublicationLost, SegmentsUnavailable
from indexer.segments.bucket import Bucket, StoredObject
from indexer.segments.publisher import Publisher, name_prefix
from indexer.segments.sweep import claim_bucket, sweep_segments
from tests.fakes.manifests import ManifestFile
from tests.indexer.segments.conftest import Cluster

pytestmark = pytest.mark.exhaustive

AT_ONCE = timedelta(0)


@dataclass
class GatedStore(Bucket):
    """A store whose writes, or deletions, wait for a test."""

    inner: Bucket
    waits: str
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def _pass(self, what: str) -> None:
        if what == self.waits:
            self.reached.set()
            await self.gate.wait()

    async def put(self, key: str, data: bytes) -> bool:
        wrote = await self.inner.put(key, data)
        await self._pass("put")
        return wrote

    async def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        await self._pass("read")
        return await self.inner.read(key, start, end)

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        return self.inner.list(prefix)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._pass("delete")
        await self.inner.delete(keys)


async def list_segments(cluster: Cluster) -> set[str]:
    return {each.key async for each in cluster.store.list(name_prefix("shop"))}


async def push(cluster: Cluster, name: str) -> None:
    cluster.repository.write(f"parts/{name}.py", f"def {name}() -> str:\n    return '{name}'\n")
    cluster.repository.commit(f"add {name}")
    await cluster.index.refresh()


async def test_what_newer_versions_need_is_kept_and_the_rest_is_swept(cluster: Cluster) -> None:
    first = await cluster.publish()
    for name in ("one", "two"):
        await push(cluster, name)
        await cluster.publisher.publish(cluster.index)
    before = await list_segments(cluster)

    swept = await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE)

    after = await list_segments(cluster)
    assert swept == len(before) - len(after) > 0
    assert not any(key.endswith(first.manifest.listing) for key in after)
    assert len(await (await cluster.open_answerer().index.pin()).files()) == 33
    assert [each.version for each in await cluster.manifests.list_manifests("shop")] == [3]


async def test_what_is_young_by_the_clock_of_the_store_is_left(cluster: Cluster) -> None:
    cluster.fake.skew = timedelta(days=-400)
    await cluster.publish()
    await push(cluster, "one")
    await cluster.publish()

    assert await sweep_segments(cluster.store, cluster.manifests) == 0

    cluster.fake.skew += timedelta(hours=2)
    assert await sweep_segments(cluster.store, cluster.manifests) > 0


async def test_a_version_that_is_being_downloaded_is_not_swept(cluster: Cluster) -> None:
    await cluster.publish()
    await cluster.manifests.pin("shop", "reader", 60)
    first = await list_segments(cluster)
    await push(cluster, "one")
    await cluster.publisher.publish(cluster.index, full=True)

    await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE)
    assert first <= await list_segments(cluster)

    await cluster.manifests.unpin("reader")
    await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE)
    assert not first & await list_segments(cluster)


async def test_a_sweep_in_the_middle_of_a_publication_takes_nothing_of_it(cluster: Cluster) -> None:
    await cluster.publish()
    await push(cluster, "one")
    gated = GatedStore(cluster.store, "put")
    publishing = asyncio.create_task(
        Publisher(gated, cluster.manifests, cluster.folder / "gated").publish(cluster.index)
    )
    await gated.reached.wait()

    await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE)
    gated.gate.set()
    await publishing

    assert len(await (await cluster.open_answerer().index.pin()).files()) == 32


async def test_a_sweep_that_stood_still_takes_nothing_that_was_published_since(cluster: Cluster) -> None:
    await cluster.publish()
    await push(cluster, "one")
    await cluster.publisher.publish(cluster.index)
    gated = GatedStore(cluster.store, "read")
    sweeping = asyncio.create_task(sweep_segments(gated, cluster.manifests, grace=AT_ONCE))
    await gated.reached.wait()
    for name in ("two", "three"):
        await push(cluster, name)
        await cluster.publisher.publish(cluster.index)
    gated.gate.set()
    await sweeping

    assert len(await (await cluster.open_answerer().index.pin()).files()) == 34


async def test_what_a_publication_left_that_died_is_swept(cluster: Cluster) -> None:
    await cluster.publish()
    await push(cluster, "one")
    before = await list_segments(cluster)
    gated = GatedStore(cluster.store, "put")
    dying = asyncio.create_task(Publisher(gated, cluster.manifests, cluster.folder / "gated").publish(cluster.index))
    await gated.reached.wait()
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying
    assert await list_segments(cluster) > before

    await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE)

    assert await list_segments(cluster) == before
    assert not list((cluster.folder / "gated").iterdir())


async def test_of_two_indexers_one_publishes_and_the_other_says_so(cluster: Cluster) -> None:
    await cluster.publish()
    await push(cluster, "one")
    gated = GatedStore(cluster.store, "put")
    slow = asyncio.create_task(Publisher(gated, cluster.manifests, cluster.folder / "gated").publish(cluster.index))
    await gated.reached.wait()
    await cluster.publisher.publish(cluster.index)
    gated.gate.set()

    with pytest.raises(PublicationLost, match="first"):
        await slow
    manifest = await cluster.manifests.read("shop")
    assert manifest is not None
    assert manifest.version == 2
    assert len(await (await cluster.open_answerer().index.pin()).files()) == 32


async def test_an_indexer_whose_pin_ran_out_does_not_switch(cluster: Cluster) -> None:
    gated = GatedStore(cluster.store, "put")
    await cluster.index.refresh()
    stalled = asyncio.create_task(Publisher(gated, cluster.manifests, cluster.folder / "gated").publish(cluster.index))
    await gated.reached.wait()
    (pin,) = await cluster.manifests.list_pinned("shop")
    await cluster.manifests.unpin(pin.holder)
    await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE)
    gated.gate.set()

    with pytest.raises(PublicationLost):
        await stalled
    assert await cluster.manifests.read("shop") is None


async def test_where_a_listing_cannot_be_read_nothing_is_swept(cluster: Cluster) -> None:
    first = await cluster.publish()
    await push(cluster, "one")
    await cluster.publish()
    second = await cluster.manifests.read("shop")
    assert second is not None
    cluster.fake.objects = {
        key: value for key, value in cluster.fake.objects.items() if not key.endswith(second.listing)
    }
    before = await list_segments(cluster)

    assert await sweep_segments(cluster.store, cluster.manifests, grace=AT_ONCE) == 0
    assert await list_segments(cluster) == before
    assert any(key.endswith(first.manifest.listing) for key in before)


async def test_a_store_that_is_away_is_a_sentence(cluster: Cluster) -> None:
    await cluster.publish()
    cluster.fake.always = 503

    with pytest.raises(SegmentsUnavailable):
        await sweep_segments(cluster.store, cluster.manifests)


async def test_a_second_cluster_is_refused(cluster: Cluster) -> None:
    other = ManifestFile(cluster.folder / "other.sqlite")
    mine = await cluster.manifests.identify_cluster()
    await claim_bucket(cluster.store, mine)
    await claim_bucket(cluster.store, mine)

    with pytest.raises(SegmentsUnavailable, match="another cluster, or to this one with another database"):
        await claim_bucket(cluster.store, await other.identify_cluster())
