"""Other branches, tags and commits of a real repository: read at their commits, built beside the index, swept."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from indexer.errors import NotIndexed, UnknownRevision
from indexer.index import CodeIndex
from indexer.refs.repository_refs import RepositoryRefs, describe_unknown
from indexer.refs.side_generations import MAX_WAITING, SideFolder, list_side_folders
from indexer.types import DiffQuery, Location, NamedRef, Progress
from tests.fakes.repositories import GitRepo
from tests.waiting import wait_until


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    """A repository whose function has another name at each of its refs; `main` is checked out."""
    repository = GitRepo(tmp_path / "shop")
    for number in range(8):
        repository.write(f"shop/part_{number}.py", f"def keep_{number}():\n    return {number}\n")
    repository.write("shop/pay.py", "def charge_old_card():\n    return 1\n")
    repository.commit("first")
    repository.git("tag", "--annotate", "--message", "one", "v1.0")
    repository.branch("release-2.1")
    repository.write("shop/pay.py", "def charge_release_card():\n    return 2\n")
    repository.commit("on the branch")
    repository.checkout("main")
    repository.write("shop/pay.py", "def charge_new_card():\n    return 3\n")
    repository.commit("on main")
    repository.git("update-ref", "refs/pull/12/head", "release-2.1")
    return repository


@asynccontextmanager
async def opened(repository: GitRepo, home: Path, **options: object) -> AsyncIterator[tuple[CodeIndex, RepositoryRefs]]:
    index = await CodeIndex.open(repository.root, home=home)
    refs = RepositoryRefs(index, **options)  # type: ignore[arg-type]
    try:
        yield index, refs
    finally:
        await refs.aclose()
        await index.aclose()


async def read(refs: RepositoryRefs, name: str) -> tuple[str, str]:
    """What is in the file at a ref, and the commit that this was read at."""
    ref = await refs.find(name)
    assert ref is not None, name
    code = await refs.pin(ref)
    return (await code.read("shop/pay.py")).text.split("(")[0].removeprefix("def "), code.commit.sha


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("Charge twice (#34)", "#34"),
        ("Merge pull request #34 from team/twice\n\nCharge twice", "#34"),
        ("Merged in twice (pull request #34)", "#34"),
        ("Merge branch 'twice' into 'main'\n\nCharge twice\n\nSee merge request team/shop!34", "!34"),
    ],
)
@pytest.mark.exhaustive
async def test_a_pull_request_that_was_merged_is_known_by_its_number(
    repository: GitRepo, tmp_path: Path, message: str, written: str
) -> None:
    repository.write("shop/pay.py", "def charge_twice():\n    return 4\n")
    repository.commit(message)
    merged = repository.sha("HEAD")
    repository.write("shop/pay.py", "def charge_once():\n    return 5\n")
    repository.commit('Revert "Charge twice (#34)" (#35)\n\nIt broke what (#34) had mended.')

    async with opened(repository, tmp_path / "home") as (index, refs):
        await index.refresh()

        assert await refs.find(written, "pull request") == NamedRef(kind="pull request", name=written, commit=merged)
        assert await refs.find("#36", "pull request") is None
        changed = await (await index.pin()).past.compare(DiffQuery(after="HEAD", until=written))

    assert (changed.older.name, changed.newer.sha) == (f"{written}^", merged)
    assert [place.added for place in changed.places] == [("def charge_twice():", "    return 4")]


async def test_each_ref_is_read_and_cited_at_its_own_commit(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as (index, refs):
        await index.refresh()
        newest = (await index.pin()).commit.sha

        assert await read(refs, "release-2.1") == ("charge_release_card", repository.sha("release-2.1"))
        assert await read(refs, "1.0") == ("charge_old_card", repository.sha("v1.0^{commit}"))
        assert await read(refs, repository.sha("release-2.1")[:9]) == (
            "charge_release_card",
            repository.sha("release-2.1"),
        )
        pull = await refs.find("#12", "pull request")
        assert pull == NamedRef(
            kind="pull request", name="#12", commit=repository.sha("release-2.1"), full_name="refs/pull/12/head"
        )
        code = await refs.pin(pull)
        assert [one.symbol.name for one in await code.definitions("charge_release_card")] == ["charge_release_card"]
        assert [one.symbol.name for one in await code.definitions("keep_3")] == ["keep_3"]
        assert not await code.definitions("charge_new_card")
        assert (await code.search("release card"))[0].location.path == "shop/pay.py"
        assert code.permalink(Location(path="shop/pay.py", start_line=1, end_line=1)) is None  # no host is known
        assert (await index.pin()).commit.sha == newest == repository.sha("main")
        assert (await index.status()).files == 9


async def test_only_files_that_differ_are_parsed(repository: GitRepo, tmp_path: Path) -> None:
    shown: list[Progress] = []
    async with opened(repository, tmp_path / "home") as (index, refs):
        await index.refresh()
        ref = await refs.find("release-2.1")
        assert ref is not None
        await refs.pin(ref, shown.append)

        assert {step.total for step in shown if step.stage == "parsing"} == {1}
        assert await refs.has(ref)


@pytest.mark.exhaustive
async def test_a_ref_is_read_before_anything_else_was_indexed(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as (_, refs):
        assert (await read(refs, "v1.0"))[0] == "charge_old_card"


@pytest.mark.exhaustive
async def test_the_least_used_generation_is_swept_and_one_that_is_read_never(
    repository: GitRepo, tmp_path: Path
) -> None:
    for number in range(3):
        repository.git("branch", f"topic-{number}", repository.sha("v1.0^{commit}"))
        repository.checkout(f"topic-{number}")
        repository.write("shop/pay.py", f"def charge_topic_{number}():\n    return 1\n")
        repository.commit(f"topic {number}")
    repository.checkout("main")
    async with opened(repository, tmp_path / "home", most=2) as (index, refs):
        await index.refresh()
        found = [await refs.find(f"topic-{number}") for number in range(3)]
        wanted = [ref for ref in found if ref is not None]
        held = await refs.pin(wanted[0])
        for age, ref in enumerate(wanted[1:]):
            await refs.pin(ref)
            for folder in list_side_folders(index.folder):  # the order of use, however coarse the disk's clock is
                if folder.commit != ref.commit:
                    os.utime(folder.root / "held.lock", (folder.last_use - 10 - age,) * 2)
        await refs.sweep()
        assert {folder.commit for folder in list_side_folders(index.folder)} >= {wanted[0].commit, wanted[2].commit}
        assert (await held.read("shop/pay.py")).text.startswith("def charge_topic_0")

        del held

        async def is_swept() -> bool:
            await refs.sweep()
            return [folder.commit for folder in list_side_folders(index.folder)] == [wanted[2].commit, wanted[1].commit]

        # The thread that has read from it may hold it for another moment.
        await wait_until(is_swept, "the generation that nobody reads is swept")
        assert await read(refs, "topic-0") == ("charge_topic_0", wanted[0].commit)


@pytest.mark.exhaustive
async def test_a_pull_request_that_nobody_asks_about_expires(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as (index, refs):
        await index.refresh()
        pull = await refs.find("12", "pull request")
        assert pull is not None
        await refs.pin(pull)
        (folder,) = list_side_folders(index.folder)
        os.utime(folder.root / "held.lock", (folder.last_use - 8 * 86_400,) * 2)
        await refs.sweep()

        assert list_side_folders(index.folder) == []


@pytest.mark.exhaustive
async def test_a_build_that_was_killed_is_begun_anew(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as (index, refs):
        await index.refresh()
        folder = SideFolder.of(index.folder, repository.sha("release-2.1"), index.provenance)
        (folder.root / "draft" / "generations").mkdir(parents=True)
        folder.data.catalog.write_bytes(b"half a catalog")

        assert (await read(refs, "release-2.1"))[0] == "charge_release_card"


@pytest.mark.exhaustive
async def test_two_who_ask_at_once_wait_for_one_build(repository: GitRepo, tmp_path: Path) -> None:
    builds: list[Progress] = []
    elsewhere: list[Progress] = []
    async with opened(repository, tmp_path / "home") as (index, refs), opened(repository, tmp_path / "home") as other:
        await index.refresh()
        ref = await refs.find("release-2.1")
        assert ref is not None
        readers = await asyncio.gather(
            refs.pin(ref, builds.append), refs.pin(ref, builds.append), other[1].pin(ref, elsewhere.append)
        )

        assert {reader.commit.sha for reader in readers} == {ref.commit}
        begun = [sum(step.stage == "listing" for step in each) for each in (builds, elsewhere)]
        assert begun in ([2, 0], [0, 1])  # one build, in either process, which all who are there have followed


@pytest.mark.exhaustive
async def test_only_so_many_commits_are_waited_for_at_once(repository: GitRepo, tmp_path: Path) -> None:
    shas = []
    for number in range(MAX_WAITING + 3):
        repository.write("shop/pay.py", f"def charge_card_{number}():\n    return {number}\n")
        repository.commit(f"number {number}")
        shas.append(repository.sha("HEAD"))
    async with opened(repository, tmp_path / "home") as (index, refs):
        await index.refresh()
        wanted = [NamedRef(kind="commit", name=sha[:12], commit=sha) for sha in shas]

        came = await asyncio.gather(*map(refs.pin, wanted), return_exceptions=True)

        refused = [one for one in came if isinstance(one, NotIndexed)]
        assert len(refused) == 3
        assert "Ask again in a minute" in str(refused[0])
        assert (await refs.pin(wanted[-1])).commit.sha == shas[-1]


@pytest.mark.exhaustive
async def test_branches_of_the_settings_are_kept_fresh(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home", branches=("main", "release-*"), most=0) as (index, refs):
        await index.refresh()
        assert [ref.name for ref in await refs.refresh_kept()] == ["release-2.1"]
        first = repository.sha("release-2.1")
        repository.checkout("release-2.1")
        repository.write("shop/pay.py", "def charge_newer_release():\n    return 4\n")
        newer = repository.commit("newer")
        repository.checkout("main")
        await refs.refresh_kept()

        assert [folder.commit for folder in list_side_folders(index.folder)] == [newer] != [first]


async def test_what_is_not_there_is_said_with_the_nearest_names(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as (_, refs):
        assert await refs.find("relaese-2.1") is None
        assert await refs.find("99", "pull request") is None
        assert describe_unknown("shop", "relaese-2.1", "branch", await refs.suggest("relaese-2.1")) == (
            "shop has no branch 'relaese-2.1'. The nearest names are release-2.1."
        )
        gone = NamedRef(kind="branch", name="gone", commit="1" * 40, full_name="refs/heads/gone")
        with pytest.raises(UnknownRevision, match="shop has no gone any more"):
            await refs.pin(gone)
        followed = await refs.find("main")
        assert followed is not None
        assert followed.is_followed
