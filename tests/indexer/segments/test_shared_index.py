"""An index that one machine builds is served by others: from publishing to an answer, through damage and restarts."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from indexer.errors import IndexerError, NotIndexed, SegmentsDamaged, SegmentsUnavailable, StorageUnwritable
from indexer.git.repository import Repository
from indexer.segments.git_packs import write_pack
from indexer.segments.publisher import PublishedIndex
from indexer.segments.shared_index import Follower
from indexer.store.fingerprint import FORMAT
from indexer.types import Drift, LogQuery
from tests.fakes.repositories import run_git
from tests.indexer.segments.conftest import Answerer, Cluster

pytestmark = pytest.mark.exhaustive


def add_part(cluster: Cluster, name: str) -> str:
    cluster.repository.write(f"parts/{name}.py", f"def {name}() -> str:\n    return '{name}'\n")
    return cluster.repository.commit(f"add {name}")


def measure_hit_rate(answerer: Answerer) -> float:
    counts = answerer.generations.counts
    return counts.found_bytes / (counts.found_bytes + counts.fetched_bytes)


async def find(answerer: Answerer, words: str) -> list[str]:
    return [hit.location.path for hit in await (await answerer.index.pin()).search(words)]


async def test_a_machine_without_the_repository_answers_as_the_one_that_indexed_it(cluster: Cluster) -> None:
    await cluster.publish()
    mine = await cluster.index.pin()

    theirs = await cluster.open_answerer().index.pin()

    assert theirs.commit == mine.commit
    assert await theirs.search("part 7") == await mine.search("part 7")
    assert await theirs.files() == await mine.files()
    assert await theirs.overview() == await mine.overview()
    assert await theirs.history("README.md") == await mine.history("README.md")
    assert await theirs.definitions("part_3") == await mine.definitions("part_3")


async def test_a_push_sends_and_fetches_a_fraction(cluster: Cluster) -> None:
    first = await cluster.publish()
    answerer = cluster.open_answerer()
    await answerer.index.pin()
    fetched = answerer.generations.counts.fetched_bytes
    add_part(cluster, "late")

    second = await cluster.publish()
    await answerer.index.refresh()

    assert second.sent_objects == 2
    assert second.sent_bytes < first.sent_bytes / 2
    assert answerer.generations.counts.fetched_bytes - fetched < fetched / 2
    assert (await find(answerer, "late"))[0] == "parts/late.py"


async def test_publishing_what_is_published_sends_nothing(cluster: Cluster) -> None:
    await cluster.publish()

    assert (await cluster.publisher.publish(cluster.index)).sent_objects == 0


async def test_who_reads_a_generation_goes_on_with_it_while_newer_ones_come(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    old = await answerer.index.pin()
    for name in ("one", "two"):
        add_part(cluster, name)
        await cluster.publish()
        await answerer.index.refresh()

    assert len(await old.files()) == 31
    assert (await old.history("README.md")).revisions[0].subject == "first"
    assert len(await (await answerer.index.pin()).files()) == 33
    assert await answerer.index.drift(old.commit.sha, ["parts/one.py", "README.md"]) == Drift(
        behind=2, changed=("parts/one.py",)
    )


async def test_what_nobody_reads_any_more_is_deleted_here(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    old = await answerer.index.pin()
    folder = answerer.generations.get("shop").folder  # type: ignore[union-attr]
    add_part(cluster, "one")
    await cluster.publish()
    await answerer.index.refresh()
    assert folder.exists()

    del old
    gc.collect()
    await answerer.index.sweep()

    assert not folder.exists()


async def test_before_anything_is_published_a_sentence_says_who_has_to(cluster: Cluster) -> None:
    with pytest.raises(NotIndexed, match="has not been published yet"):
        await cluster.open_answerer().index.pin()
    assert (await cluster.open_answerer("other").index.status()).commit is None


async def test_a_restarted_machine_serves_what_it_has_without_asking_the_store(cluster: Cluster) -> None:
    await cluster.publish()
    before = cluster.open_answerer()
    await before.index.pin()
    before.generations.close()
    cluster.fake.always = 503

    assert await find(cluster.open_answerer(), "part 7")


async def test_altered_bytes_in_the_store_are_refused_and_what_is_here_is_served(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    before = (await answerer.index.pin()).commit
    known = set(cluster.fake.objects)
    add_part(cluster, "late")
    await cluster.publish()
    whole = {}
    for key in set(cluster.fake.objects) - known:
        data, at = whole[key] = cluster.fake.objects[key]
        cluster.fake.objects[key] = data[: len(data) // 2] + bytes(len(data) - len(data) // 2), at

    with pytest.raises(SegmentsDamaged):
        await answerer.index.refresh()
    status = await answerer.index.status()
    assert (await answerer.index.pin()).commit == before
    assert not await answerer.index.is_current()
    assert "hash" in status.warnings[0]

    cluster.fake.objects |= whole
    await answerer.index.refresh()
    assert (await answerer.index.status()).warnings == ()


async def test_a_torn_object_is_refused(cluster: Cluster) -> None:
    await cluster.publish()
    for key, (data, at) in cluster.fake.objects.items():
        cluster.fake.objects[key] = data[: len(data) - 10], at

    with pytest.raises(SegmentsDamaged):
        await cluster.open_answerer().index.refresh()


async def test_a_missing_object_is_refused_until_everything_is_published_anew(cluster: Cluster) -> None:
    await cluster.publish()
    cluster.fake.objects.clear()
    answerer = cluster.open_answerer()
    with pytest.raises(SegmentsDamaged, match="index --full"):
        await answerer.index.refresh()

    await cluster.publish(full=True)

    assert await find(answerer, "part 7")


@pytest.mark.parametrize("status", [403, 503, 507])
async def test_a_store_that_refuses_leaves_what_is_here(cluster: Cluster, status: int) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    await answerer.index.pin()
    add_part(cluster, "late")
    await cluster.publish()
    cluster.fake.always = status

    with pytest.raises(SegmentsUnavailable):
        await answerer.index.refresh()
    assert await find(answerer, "part 7")


async def test_a_download_that_was_broken_off_goes_on_where_it_was(cluster: Cluster) -> None:
    first = await cluster.publish()
    answerer = cluster.open_answerer()
    manifest = first.manifest
    await answerer.index.pin()
    answerer.generations.close()
    whole = answerer.generations.folder(manifest)
    draft = answerer.generations.draft(manifest)
    whole.rename(draft)  # as it is just before the end
    with (draft / "catalog.sqlite").open("r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))

    again = cluster.open_answerer()
    await again.index.pin()

    assert measure_hit_rate(again) > 0.9
    assert await find(again, "part 7")


@pytest.mark.parametrize("name", ["catalog.sqlite", "snapshot.npy"])
async def test_a_file_that_is_damaged_here_is_mended_from_the_store(cluster: Cluster, name: str) -> None:
    await cluster.publish()
    before = cluster.open_answerer()
    await before.index.pin()
    before.generations.close()
    (path,) = (cluster.folder / "answerer").rglob(name)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(data)

    after = cluster.open_answerer()

    assert await find(after, "part 7")
    assert measure_hit_rate(after) > 0.3


async def test_the_least_used_index_makes_room_but_never_one_that_is_read(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer(most_bytes=1)
    held = await answerer.index.pin()
    other = cluster.open_index(answerer.generations, "other")
    await publish_as(cluster, "other")

    await other.pin()
    assert await held.search("part 7")
    folders = list((cluster.folder / "answerer").iterdir())
    assert len(folders) == 2

    del held
    gc.collect()
    third = cluster.open_index(answerer.generations, "third")
    await publish_as(cluster, "third")
    await third.pin()
    assert answerer.generations.get("shop") is None
    assert await find(answerer, "part 7"), "it is downloaded again when it is asked about"


async def publish_as(cluster: Cluster, name: str) -> None:
    cluster.index.repository.name = name
    try:
        await cluster.publisher.publish(cluster.index)
    finally:
        cluster.index.repository.name = "shop"


async def test_two_machines_with_one_disk_download_once(cluster: Cluster) -> None:
    await cluster.publish()
    one, other = cluster.open_answerer("disk"), cluster.open_answerer("disk")

    await asyncio.gather(one.index.pin(), other.index.pin())

    counts = sorted([one.generations.counts.fetched_bytes, other.generations.counts.fetched_bytes])
    assert counts[0] == 0 < counts[1]


async def test_a_full_disk_is_a_sentence(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("indexer.segments.block_assembly.os.pwrite", refuse)
        with pytest.raises(StorageUnwritable, match="is full"):
            await answerer.index.refresh()
    assert await find(answerer, "part 7")


async def test_another_embedder_is_refused_before_anything_is_downloaded(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    manifest = await cluster.manifests.read("shop")
    assert manifest is not None
    other = replace(manifest, version=2, publication="e" * 32, provenance=f"{FORMAT}/other/")
    await cluster.manifests.pin("shop", other.publication, 60)
    await cluster.manifests.switch("shop", 1, other)

    with pytest.raises(NotIndexed, match="CITEBOT_EMBEDDER"):
        await answerer.index.pin()
    assert answerer.generations.counts.requests == 0


async def test_a_follower_downloads_what_is_asked_about_and_nothing_else(cluster: Cluster) -> None:
    await cluster.publish()
    answerer, idle = cluster.open_answerer(), cluster.open_answerer("idle")
    await answerer.index.pin()
    sha = add_part(cluster, "late")
    await cluster.publish()

    for each in (answerer, idle):
        await Follower({"shop": each.index}, cluster.manifests).look()

    assert (await answerer.index.pin()).commit.sha == sha
    assert not idle.index.is_open


async def test_a_follower_survives_a_store_that_is_away(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    await answerer.index.pin()
    sha = add_part(cluster, "late")
    await cluster.publish()
    follower = Follower({"shop": answerer.index}, cluster.manifests)

    cluster.fake.always = 503
    await follower.look()
    cluster.fake.always = 0
    await follower.look()

    assert (await answerer.index.pin()).commit.sha == sha


async def test_what_could_not_be_published_is_not_indexed_yet(cluster: Cluster) -> None:
    index = PublishedIndex(cluster.index, cluster.publisher)
    cluster.fake.always = 503
    with pytest.raises(IndexerError):
        await index.refresh()
    assert (await index.status()).commit is None
    assert not await index.is_current()

    cluster.fake.always = 0
    report = await index.refresh()

    assert (await index.status()).commit == report.commit
    assert await index.is_current()


@pytest.mark.exhaustive
async def test_the_history_of_many_pushes_stays_in_a_few_packs(cluster: Cluster) -> None:
    answerer = cluster.open_answerer()
    for number in range(20):
        cluster.repository.write("README.md", f"# Shop\n\nNumber {number}.\n")
        cluster.repository.commit(f"number {number}")
        if number % 5 == 0:
            cluster.repository.git("tag", f"v{number}")
        await cluster.publish()
    await answerer.index.refresh()

    reader = await answerer.index.pin()
    history = await reader.history("README.md", limit=50)
    packs = list((cluster.folder / "answerer").rglob("*.pack"))
    assert [each.subject for each in history.revisions] == [f"number {number}" for number in reversed(range(20))] + [
        "first"
    ]
    assert len(packs) <= 16
    assert (await reader.past.log(LogQuery(until="v0"))).until is not None


def test_a_partial_clone_is_packed_as_far_as_it_was_fetched(cluster: Cluster) -> None:
    cluster.repository.git("config", "uploadpack.allowFilter", "true")
    source = cluster.repository.root.as_uri()
    run_git(cluster.folder, "clone", "--quiet", "--filter=blob:none", "--no-checkout", source, "partial")
    with Repository.open(cluster.folder / "partial") as repository:
        assert write_pack(repository.git, cluster.folder, [cluster.repository.sha()], ())


async def test_a_rewritten_history_is_published_whole(cluster: Cluster) -> None:
    await cluster.publish()
    answerer = cluster.open_answerer()
    await answerer.index.pin()
    cluster.repository.git("checkout", "--quiet", "--orphan", "other")
    cluster.repository.commit("anew")
    cluster.repository.git("branch", "--force", "main")
    cluster.repository.git("reflog", "expire", "--expire=now", "--all")
    cluster.repository.git("gc", "--quiet", "--prune=now")
    await cluster.publish()

    await answerer.index.refresh()

    assert [each.subject for each in (await (await answerer.index.pin()).history("README.md")).revisions] == ["anew"]
