"""Branches, tags and pull requests of a clone: fetched when they are asked for, whatever they are called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.errors import RemoteError, UnknownRevision
from indexer.index import CodeIndex
from indexer.refs.repository_refs import RepositoryRefs
from indexer.remotes.addresses import Address
from indexer.remotes.clone import RemoteClone, list_commits_by_ref
from indexer.remotes.ref_list import RefTable, is_ref_name, list_pull_refs
from indexer.remotes.remote_repository import RemoteRepository
from indexer.types import DiffQuery, LogQuery
from tests.fakes.repositories import GitRepo, run_git

pytestmark = pytest.mark.exhaustive

HOSTILE = (
    "--upload-pack=touch x",
    "-x",
    "--",
    "@",
    "HEAD",
    "a..b",
    "a b",
    "a^",
    "a:b",
    "x@{1}",
    "a.lock",
    "a//b",
    "/a",
)


@pytest.fixture
def work(tmp_path: Path) -> GitRepo:
    """What the host has: a pull request, and a branch and a tag of one name."""
    work = GitRepo(tmp_path / "host")
    work.write("pay.py", "def charge():\n    return 1\n")
    work.commit("first")
    work.branch("topic/new")
    work.write("pay.py", "def charge_topic():\n    return 2\n")
    work.commit("topic")
    work.git("update-ref", "refs/pull/7/head", "HEAD")
    work.checkout("main")
    work.branch("1.0", at="topic/new")
    work.checkout("main")
    work.git("tag", "1.0")
    return work


@asynccontextmanager
async def followed(work: GitRepo, home: Path, **options: int) -> AsyncIterator[tuple[RemoteClone, RepositoryRefs]]:
    clone = RemoteClone(RemoteRepository(name="shop", url=f"file://{work.root}", **options), home)  # type: ignore[arg-type]
    await clone.newest()
    index = await CodeIndex.open(clone.path, home=home, name="shop")
    refs = RepositoryRefs(index, clone)
    try:
        yield clone, refs
    finally:
        await refs.aclose()
        await index.aclose()


async def read(refs: RepositoryRefs, name: str, *, pull: bool = False) -> str:
    ref = await refs.find(name, "pull request" if pull else None)
    assert ref is not None, name
    return (await (await refs.pin(ref)).read("pay.py")).text.split("(")[0].removeprefix("def ")


async def test_a_branch_is_fetched_when_it_is_asked_for_and_moves_with_the_host(work: GitRepo, tmp_path: Path) -> None:
    async with followed(work, tmp_path / "home") as (clone, refs):
        before = run_git(clone.path, "rev-parse", "HEAD")
        assert await read(refs, "topic/new") == "charge_topic"
        assert await read(refs, "1.0") == "charge_topic"  # the branch and not the tag, which git would take
        work.checkout("topic/new")
        work.git("reset", "--quiet", "--hard", "main")
        work.write("pay.py", "def charge_forced():\n    return 3\n")
        forced = work.commit("forced")
        work.git("update-ref", "refs/pull/7/head", "HEAD")
        work.checkout("main")
        assert await read(refs, "#7", pull=True) == "charge_forced"
        await clone.newest()
        assert await read(refs, "topic/new") == "charge_forced"
        assert forced in run_git(clone.path, "for-each-ref", "--format=%(refname)", "refs/citebot/at")
        assert run_git(clone.path, "rev-parse", "HEAD") == before


async def test_a_shallow_clone_reads_another_branch(work: GitRepo, tmp_path: Path) -> None:
    async with followed(work, tmp_path / "home", depth=1) as (_, refs):
        assert await read(refs, "topic/new") == "charge_topic"


async def test_a_pull_request_that_the_host_does_not_offer_is_none(work: GitRepo, tmp_path: Path) -> None:
    async with followed(work, tmp_path / "home") as (clone, refs):
        assert await refs.find("#8", "pull request") is None
        assert await refs.find("1" * 40, "commit") is None
        work.root.rename(tmp_path / "away")
        with pytest.raises(RemoteError):
            await refs.find("#7", "pull request")
        assert await refs.find("topic/new") is not None  # as it was listed last
        assert await clone.fetch_ref("refs/heads/--upload-pack=x y") is None


async def test_names_that_are_none_run_nothing(work: GitRepo, tmp_path: Path) -> None:
    async with followed(work, tmp_path / "home") as (clone, refs):
        for name in HOSTILE:
            assert await refs.find(name) is None, name
            assert await clone.fetch_ref(name) is None, name
            assert await clone.fetch_ref(f"refs/heads/{name}") is None, name


@settings(max_examples=300, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab-./~^:@{} \\*?[\n\0#1é"), max_size=12)
    | st.sampled_from(HOSTILE)
    | st.text(max_size=30)
)
def test_only_a_listed_name_is_ever_found(name: str) -> None:
    table = RefTable({"refs/heads/main": "1" * 40, "refs/heads/-x": "2" * 40, f"refs/heads/{name}": "3" * 40})
    found = table.find(name)

    assert found is None or is_ref_name(name.strip())
    assert found is None or not found.full_name.removeprefix("refs/heads/").startswith("-")
    assert all(isinstance(each, str) for each in table.suggest(name))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=20).map(lambda name: f"refs/heads/{name}"), st.just("1" * 40), max_size=5))
def test_a_listing_of_a_hostile_host_has_only_names_of_refs(listed: dict[str, str]) -> None:
    assert all(is_ref_name(name) for name in list_commits_by_ref(listed))


@pytest.mark.parametrize(
    ("url", "refs"),
    [
        ("https://github.com/team/shop", ["refs/pull/7/head"]),
        ("https://gitlab.example.org/team/shop", ["refs/merge-requests/7/head"]),
        ("https://dev.azure.com/team/shop", ["refs/pull/7/merge"]),
        ("https://bitbucket.org/team/shop", []),
        ("git@bitbucket.example.org:team/shop.git", ["refs/pull-requests/7/from"]),
        (
            "https://git.example.org/shop",
            ["refs/pull/7/head", "refs/merge-requests/7/head", "refs/pull-requests/7/from"],
        ),
    ],
)
def test_each_host_has_its_own_ref_for_a_pull_request(url: str, refs: list[str]) -> None:
    assert list_pull_refs(Address.parse(url), 7) == refs


async def test_names_in_a_comparison_are_fetched_where_they_were_not(work: GitRepo, tmp_path: Path) -> None:
    async with followed(work, tmp_path / "home") as (_, refs):
        index = refs._index
        await index.refresh()
        past = (await index.pin()).past
        for name in ("topic/new", "origin/topic/new", "#7"):
            found = await past.compare(DiffQuery(after="main", until=name))
            assert [one.path for one in found.files] == ["pay.py"], name
            assert found.newer.sha == work.sha("topic/new")
            assert (await past.compare(DiffQuery(after="HEAD", until=name))).files == found.files
        log = await past.log(LogQuery(after="main", until="topic/new"))
        assert [one.subject for one in log.revisions] == ["topic"]
        for name in ("topic/old", "#8", *HOSTILE):
            if name != "HEAD":  # what is read
                with pytest.raises(UnknownRevision):
                    await past.compare(DiffQuery(after="main", until=name))
        with pytest.raises(UnknownRevision, match="nearest names are topic/new"):
            await past.compare(DiffQuery(after="topic/mew"))

        commit = work.sha("topic/new")
        assert await refs.read_file(commit, "pay.py") == ["def charge_topic():", "    return 2"]
        assert await refs.read_file(commit, "../pay.py") is None
        assert await refs.read_file(commit, "gone.py") is None
        assert await refs.read_file("0" * 40, "pay.py") is None
        assert await refs.read_file("--output=x", "pay.py") is None
