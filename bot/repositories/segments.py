"""Indexes that machines share: published in an object store by those that index, and served by those that answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bot.storage.manifest_table import ManifestTable
from bot.tasks import run_in_background

if TYPE_CHECKING:
    from bot.storage.database import SqlDatabase
    from indexer import (
        Bucket,
        BuiltIndex,
        LocalGenerations,
        Manifests,
        PublishedIndex,
        ReadingParts,
        SharedIndex,
    )

# Calls what it is given whenever something may have been published, as long as its context is open.
Listen = Callable[[Callable[[], None]], AbstractAsyncContextManager[None]]

_CACHE_FOLDER = "generations"  # in the data folder
_SCRATCH_FOLDER = "publishing"
_MANIFEST_FILE = "manifests.sqlite"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexLag:
    """How far what is served here of a repository is behind what was published last: versions, and seconds of age."""

    repository: str
    versions: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SharedSegments:
    """An object store and what says which generation of each repository is served from it."""

    store: Bucket
    manifests: Manifests
    generations: LocalGenerations
    scratch: Path
    listen: Listen
    followed: dict[str, SharedIndex] = field(default_factory=dict)

    def publish_index(self, index: BuiltIndex) -> PublishedIndex:
        """Return an index of which each refresh is published."""
        from indexer import PublishedIndex, Publisher

        return PublishedIndex(index, Publisher(self.store, self.manifests, self.scratch), self.manifests)

    def open_index(self, parts: ReadingParts) -> SharedIndex:
        """Return the index of a repository that another machine publishes; nothing is downloaded yet."""
        from indexer import SharedIndex

        return SharedIndex(parts, store=self.store, manifests=self.manifests, generations=self.generations)

    @asynccontextmanager
    async def follow(self, indexes: Mapping[str, SharedIndex]) -> AsyncIterator[None]:
        """Download what is published of the repositories that are asked about here, as long as the context is open."""
        from indexer import Follower

        self.followed.update(indexes)
        follower = Follower(indexes, self.manifests)
        async with self.listen(follower.notify), run_in_background(follower.run()):
            yield

    async def measure_lags(self) -> Sequence[IndexLag]:
        """Compare what is served here with what was published last; raises `SegmentsUnavailable`."""
        newest, lags = await self.manifests.list_versions(), []
        for name, index in self.followed.items():
            served = index.get_served()
            if served is None or name not in newest:
                continue
            version, indexed_at = served
            late = await self.manifests.read(name) if newest[name] > version else None
            published_at = late.status.indexed_at if late is not None else None
            seconds = max(0.0, published_at - indexed_at) if published_at is not None else 0.0
            lags.append(IndexLag(repository=name, versions=max(0, newest[name] - version), seconds=seconds))
        return lags

    async def measure_cache(self) -> int:
        """Return the bytes that generations take on this disk."""
        return await asyncio.to_thread(self.generations.measure)

    async def sweep(self) -> int:
        """Delete what nobody needs any more from the object store; return how many objects that were."""
        from indexer import sweep_segments

        return await sweep_segments(self.store, self.manifests)


def _hear_nothing(_: Callable[[], None]) -> AbstractAsyncContextManager[None]:
    """Leave it to whoever follows to look now and then."""
    return nullcontext()


@asynccontextmanager
async def open_segments(
    url: str, home: Path, database: SqlDatabase | None, *, cache_bytes: int, listen: Listen = _hear_nothing
) -> AsyncGenerator[SharedSegments]:
    """Open the object store at an address, with manifests in a database, or else in a file of the data folder.

    `listen` tells those who follow that something was published, before they look by themselves. Raises
    `SegmentsUnavailable`, also where the bucket is another cluster's.
    """
    from indexer import LocalGenerations, ManifestFile, claim_bucket, open_bucket

    store = open_bucket(url)
    manifests = ManifestFile(home / _MANIFEST_FILE) if database is None else ManifestTable(database)
    await claim_bucket(store, await manifests.identify_cluster())
    generations = LocalGenerations(home / _CACHE_FOLDER, cache_bytes)
    try:
        yield SharedSegments(
            store=store, manifests=manifests, generations=generations, scratch=home / _SCRATCH_FOLDER, listen=listen
        )
    finally:
        await asyncio.to_thread(generations.close)
