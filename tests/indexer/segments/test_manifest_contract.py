"""The contract of manifest stores."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from indexer.segments.manifest_store import Manifest, Manifests, find_owner, name_beside
from indexer.types import IndexStatus, ListedRefs, PlainFile
from tests.indexer.segments.conftest import OpenManifests

STATUS = IndexStatus(
    repository="shop", path="", commit="a" * 40, branch="main", indexed_at=1.5, commits_behind=0, files=3, chunks=4,
    symbols=5, embedder="static", disk_bytes=6, skipped={"binary": 2},
    plain_files=(PlainFile(path="a.py", reason="time"),), warnings=("It is shallow.",),
)  # fmt: skip
FIRST = Manifest(
    repository="shop", version=1, publication="1" * 32, listing="f" * 64, provenance="8/static/x", status=STATUS
)
LONG = 60.0


def make_next(before: Manifest) -> Manifest:
    publication = str(before.version + 1) * 32
    return replace(before, version=before.version + 1, publication=publication[:32])


async def publish(manifests: Manifests, manifest: Manifest) -> bool:
    await manifests.pin(manifest.repository, manifest.publication, LONG)
    switched = await manifests.switch(manifest.repository, manifest.version - 1, manifest)
    await manifests.unpin(manifest.publication)
    return switched


async def test_nothing_is_published_at_first(any_manifests: Manifests) -> None:
    assert await any_manifests.read("shop") is None
    assert await any_manifests.list_versions() == {}
    assert await any_manifests.list_manifests("shop") == []


async def test_what_is_published_is_read_back_as_it_was(any_manifests: Manifests) -> None:
    assert await publish(any_manifests, FIRST)

    assert await any_manifests.read("shop") == FIRST
    assert await any_manifests.list_versions() == {"shop": 1}


async def test_of_two_who_publish_after_the_same_version_one_does(open_manifests: OpenManifests) -> None:
    async with open_manifests() as one, open_manifests() as other:
        await publish(one, FIRST)
        mine, theirs = make_next(FIRST), replace(make_next(FIRST), publication="e" * 32)

        assert sorted(await asyncio.gather(publish(one, mine), publish(other, theirs))) == [False, True]
        assert (await one.read("shop")) in (mine, theirs)


async def test_a_version_that_was_overtaken_long_ago_is_not_switched_to(any_manifests: Manifests) -> None:
    manifest = FIRST
    for _ in range(3):
        await publish(any_manifests, manifest)
        manifest = make_next(manifest)
    await any_manifests.forget("shop", 3)

    assert not await publish(any_manifests, replace(make_next(FIRST), publication="e" * 32))
    assert [each.version for each in await any_manifests.list_manifests("shop")] == [3]


async def test_who_holds_no_pin_any_more_cannot_switch(any_manifests: Manifests) -> None:
    await any_manifests.pin("shop", FIRST.publication, 0.0)

    assert not await any_manifests.switch("shop", 0, FIRST)
    assert await any_manifests.read("shop") is None


async def test_a_pin_holds_the_version_that_is_newest_when_it_is_set(any_manifests: Manifests) -> None:
    await publish(any_manifests, FIRST)

    assert await any_manifests.pin("shop", "reader", LONG) == FIRST
    await publish(any_manifests, make_next(FIRST))

    assert [(pin.holder, pin.version) for pin in await any_manifests.list_pinned("shop")] == [("reader", 1)]


async def test_a_pin_on_what_was_never_published_holds_too(any_manifests: Manifests) -> None:
    assert await any_manifests.pin("shop", "publisher", LONG) is None

    assert [(pin.holder, pin.version) for pin in await any_manifests.list_pinned("shop")] == [("publisher", 0)]
    assert await any_manifests.list_pinned("other") == []


async def test_a_pin_that_has_run_out_is_none_and_is_not_renewed(any_manifests: Manifests) -> None:
    await any_manifests.pin("shop", "reader", 0.0)

    assert await any_manifests.list_pinned("shop") == []
    assert not await any_manifests.renew("reader", LONG)


async def test_a_pin_that_is_renewed_holds_on(any_manifests: Manifests) -> None:
    await any_manifests.pin("shop", "reader", LONG)

    assert await any_manifests.renew("reader", LONG)
    assert not await any_manifests.renew("stranger", LONG)
    await any_manifests.unpin("reader")
    await any_manifests.unpin("reader")
    assert await any_manifests.list_pinned("shop") == []


async def test_versions_are_forgotten_but_for_those_that_are_pinned(any_manifests: Manifests) -> None:
    manifest = FIRST
    await publish(any_manifests, manifest)
    await any_manifests.pin("shop", "reader", LONG)
    for _ in range(2):
        manifest = make_next(manifest)
        await publish(any_manifests, manifest)

    await any_manifests.forget("shop", 3)

    assert [each.version for each in await any_manifests.list_manifests("shop")] == [1, 3]


async def test_repositories_do_not_mind_each_other(any_manifests: Manifests) -> None:
    await publish(any_manifests, FIRST)
    await publish(any_manifests, replace(FIRST, repository="other", publication="e" * 32))

    await any_manifests.forget("other", 2)

    assert await any_manifests.list_versions() == {"shop": 1}


async def test_all_who_ask_are_told_one_id_of_the_cluster(open_manifests: OpenManifests) -> None:
    async with open_manifests() as one, open_manifests() as other:
        ids = await asyncio.gather(*(each.identify_cluster() for each in (one, other, one, other)))

    assert len(set(ids)) == 1
    assert ids[0]


async def test_the_refs_that_were_noted_last_are_read_back(any_manifests: Manifests) -> None:
    assert await any_manifests.read_refs("shop") == ListedRefs()
    refs = ListedRefs(commits={"refs/heads/main": "a" * 40, "refs/tags/v1": "b" * 40}, followed="main")
    await any_manifests.note_refs("shop", ListedRefs(commits={"refs/heads/old": "c" * 40}, followed="old"))

    await any_manifests.note_refs("shop", refs)

    assert await any_manifests.read_refs("shop") == refs
    assert await any_manifests.read_refs("other") == ListedRefs()


async def test_what_lies_beside_a_repository_is_switched_under_its_pin(any_manifests: Manifests) -> None:
    await publish(any_manifests, FIRST)
    beside = replace(FIRST, repository=name_beside("shop", "b" * 40), publication="2" * 32)
    await any_manifests.pin("shop", beside.publication, LONG)

    assert await any_manifests.switch(beside.repository, 0, beside)

    assert await any_manifests.read(beside.repository) == beside
    assert await any_manifests.read("shop") == FIRST
    assert find_owner(beside.repository) == "shop"
