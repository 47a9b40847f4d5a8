"""Processes of a cluster share an object store: one publishes, one serves."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent import PostgresDatabase
from bot.app import TeamRepositories, open_team_repositories
from bot.maintenance.retention import Retention
from bot.repositories.segments import open_segments
from bot.settings import RepositoryTable, Settings
from bot.storage.database import open_postgres
from bot.storage.manifest_table import ManifestTable
from indexer import CodeIndex, NotIndexed, PublishedIndex, ReadingParts, SegmentsUnavailable, open_objects
from indexer.embedding.factory import open_embedder
from indexer.search.ranking import RankingWeights
from tests.fakes.clock import FakeClock
from tests.fakes.manifests import ManifestFile
from tests.fakes.postgres import make_database
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen

CACHE = 10**9


def make_parts() -> ReadingParts:
    return ReadingParts(name="shop", web_url=None, embedder=open_embedder("static"), recipe=RankingWeights())


@pytest.mark.needs("postgres")
async def test_what_one_machine_publishes_others_serve(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("pay.py", "def pay() -> None:\n    pass\n")
    sha = repository.commit()
    url = f"file://{tmp_path / 'bucket'}"
    async with make_database() as address, open_postgres(address) as database:
        async with open_segments(url, tmp_path / "indexer", ManifestTable(database), cache_bytes=CACHE) as mine:
            index = await CodeIndex.open(repository.root, home=tmp_path / "indexer", name="shop")
            await PublishedIndex(index, mine.open_publisher()).refresh()
            await index.aclose()

        async with open_segments(url, tmp_path / "answerer", ManifestTable(database), cache_bytes=CACHE) as theirs:
            served = theirs.open_index(make_parts())
            async with theirs.follow({"shop": served}):
                assert [hit.location.path for hit in await (await served.pin()).search("pay")] == ["pay.py"]
            status = await served.status()
            assert status.commit == sha
            with open_objects(Path(status.path)) as objects:  # of which goal runs make their copies
                assert [each.path for each in objects.list_tree(sha)] == ["pay.py"]
            assert await theirs.sweep() == 0


@pytest.mark.needs("postgres")
async def test_who_does_everything_publishes_and_answers_from_what_another_one_has_published(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("pay.py", "def pay() -> None:\n    pass\n")
    repository.commit()
    url = f"file://{tmp_path / 'bucket'}"

    @asynccontextmanager
    async def open_process(name: str, database: PostgresDatabase) -> AsyncIterator[TeamRepositories]:
        home = tmp_path / name
        settings = Settings(home=home, repositories=(RepositoryTable(path=repository.root),))
        async with (
            open_segments(url, home, ManifestTable(database), cache_bytes=CACHE) as segments,
            open_team_repositories(settings, tmp_path, Unseen(), segments=segments) as stock,
        ):
            yield stock

    async with make_database() as address, open_postgres(address) as database:
        async with open_process("one", database) as one:
            await one.library.refresh("shop")
            assert [hit.location.path for hit in await (await one.library.pin("shop")).search("pay")] == ["pay.py"]
            assert await one.sweep() == []

        async with open_process("other", database) as other:
            assert [hit.location.path for hit in await (await other.library.pin("shop")).search("pay")] == ["pay.py"]
            assert other.built is not None
            with pytest.raises(NotIndexed):
                await other.built.pin_existing("shop")


async def test_what_a_later_push_has_replaced_is_swept_daily(tmp_path: Path) -> None:
    bucket, clock = tmp_path / "bucket", FakeClock()
    repository = GitRepo(tmp_path / "shop")
    manifests = ManifestFile(tmp_path / "manifests.sqlite")
    async with open_segments(f"file://{bucket}", tmp_path / "home", manifests, cache_bytes=CACHE) as segments:
        index = await CodeIndex.open(repository.root, home=tmp_path / "home", name="shop")
        for content in ("def pay(): pass\n", "def pay_back(): pass\n"):
            repository.write("pay.py", content)
            repository.commit()
            await PublishedIndex(index, segments.open_publisher()).refresh(full=True)
        await index.aclose()
        for path in (each for each in bucket.rglob("*") if each.is_file()):
            os.utime(path, (0, 0))
        before = {each for each in bucket.rglob("*") if each.is_file()}

        swept = await Retention(home=tmp_path / "home", days=90, clock=clock, sweep_segments=segments.sweep).sweep()

        assert swept.problems == []
        assert len({each for each in bucket.rglob("*") if each.is_file()}) < len(before)
        served = segments.open_index(make_parts())
        async with segments.follow({"shop": served}):
            assert [hit.location.path for hit in await (await served.pin()).search("pay")] == ["pay.py"]


async def test_a_bucket_of_another_database_is_refused(tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'bucket'}"
    one, other = (ManifestFile(tmp_path / f"{name}.sqlite") for name in ("one", "other"))
    for _ in range(2):
        async with open_segments(url, tmp_path, one, cache_bytes=CACHE):
            pass

    with pytest.raises(SegmentsUnavailable, match="belongs to another cluster"):
        async with open_segments(url, tmp_path, other, cache_bytes=CACHE):
            pass
