"""Every implementation of what publishing needs, and machines that share one: an indexer and its answerers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from bot.storage.database import open_postgres
from bot.storage.manifest_table import ManifestTable
from indexer.embedding.factory import open_embedder
from indexer.index import CodeIndex
from indexer.search.ranking import RankingWeights
from indexer.segments.bucket import Bucket, open_bucket
from indexer.segments.local_generations import LocalGenerations
from indexer.segments.manifest_store import Manifests
from indexer.segments.opened_generation import ReadingParts
from indexer.segments.publisher import Publication, Publisher
from indexer.segments.shared_index import SharedIndex
from tests.fakes.manifests import ManifestFile
from tests.fakes.postgres import lend_database
from tests.fakes.repositories import GitRepo
from tests.fakes.s3 import BUCKET, FakeS3, serve_s3
from tests.needs import name_params

OpenManifests = Callable[[], AbstractAsyncContextManager[Manifests]]


@asynccontextmanager
async def open_memory(_: Path) -> AsyncIterator[Bucket]:
    yield open_bucket("memory://")


@asynccontextmanager
async def open_folder(folder: Path) -> AsyncIterator[Bucket]:
    yield open_bucket(f"file://{folder / 'bucket'}")


@asynccontextmanager
async def open_s3(_: Path) -> AsyncIterator[Bucket]:
    async with serve_s3() as fake:
        fake.page = 2
        yield open_bucket(f"s3://{BUCKET}/indexes", options=fake.options)


STORES = {"memory": open_memory, "folder": open_folder, "s3": open_s3}


@pytest_asyncio.fixture(params=STORES)
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bucket]:
    async with STORES[request.param](tmp_path) as store:
        yield store


@asynccontextmanager
async def begin_file(folder: Path) -> AsyncIterator[OpenManifests]:
    @asynccontextmanager
    async def opening() -> AsyncIterator[Manifests]:
        yield ManifestFile(folder / "manifests.sqlite")

    yield opening


@asynccontextmanager
async def begin_postgres(_: Path) -> AsyncIterator[OpenManifests]:
    async with lend_database() as url:

        @asynccontextmanager
        async def opening() -> AsyncIterator[Manifests]:
            async with open_postgres(url) as database:
                yield ManifestTable(database)

        yield opening


MANIFESTS = {"file": begin_file, "postgres": begin_postgres}


@pytest_asyncio.fixture(params=name_params(MANIFESTS))
async def open_manifests(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenManifests]:
    """Open manifests, as another process does that shares them."""
    async with MANIFESTS[request.param](tmp_path) as opening:
        yield opening


@pytest_asyncio.fixture
async def any_manifests(open_manifests: OpenManifests) -> AsyncIterator[Manifests]:
    async with open_manifests() as manifests:
        yield manifests


@dataclass
class Answerer:
    """A machine that answers: its disk, and the one index that it serves."""

    generations: LocalGenerations
    index: SharedIndex


@dataclass
class Cluster:
    """A repository, the machine that indexes it, a store over a fake S3, and as many answerers as a test opens."""

    folder: Path
    repository: GitRepo
    fake: FakeS3
    store: Bucket
    manifests: ManifestFile
    index: CodeIndex
    publisher: Publisher
    opened: list[LocalGenerations] = field(default_factory=list)

    async def publish(self, *, full: bool = False) -> Publication:
        """Index what is committed and publish it."""
        await self.index.refresh(full=full)
        return await self.publisher.publish(self.index, full=full)

    def open_answerer(self, name: str = "answerer", *, most_bytes: int = 10**9, repository: str = "shop") -> Answerer:
        """Open a machine that answers; the same name again is that machine after a restart."""
        generations = LocalGenerations(self.folder / name, most_bytes)
        self.opened.append(generations)
        return Answerer(generations, self.open_index(generations, repository))

    def open_index(self, generations: LocalGenerations, repository: str = "shop") -> SharedIndex:
        """Open an index on a machine."""
        parts = ReadingParts(name=repository, web_url=None, embedder=open_embedder("static"), recipe=RankingWeights())
        return SharedIndex(parts, store=self.store, manifests=self.manifests, generations=generations)


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    repository = GitRepo(tmp_path / "shop")
    for number in range(30):
        repository.write(f"parts/part_{number}.py", f"def part_{number}() -> int:\n    return {number}\n")
    repository.write("README.md", "# Shop\n\nSells things to people who want them.\n")
    repository.commit("first")
    index = await CodeIndex.open(repository.root, home=tmp_path / "indexer", name="shop")
    async with serve_s3() as fake:
        store = open_bucket(f"s3://{BUCKET}/indexes", options=fake.options)
        manifests = ManifestFile(tmp_path / "manifests.sqlite")
        publisher = Publisher(store, manifests, tmp_path / "scratch")
        made = Cluster(tmp_path, repository, fake, store, manifests, index, publisher)
        try:
            yield made
        finally:
            for generations in made.opened:
                generations.close()
            await index.aclose()
