"""Other branches, tags and commits where one machine indexes and another one answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from bot.app import TeamRepositories, open_team_repositories
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.repositories.segments import SharedSegments, open_segments
from bot.settings import RepositoryTable, Settings
from indexer import IndexerError, LocalGenerations, NamedRef, UnknownRevision, sweep_segments
from tests.bot.repositories.test_segments import make_parts
from tests.fakes.manifests import ManifestFile
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen

pytestmark = pytest.mark.exhaustive

CACHE = 10**9
OLD_PRICE = 'def round_price(cents):\n    """Round a price down."""\n    return cents // 100\n'


@dataclass(frozen=True, kw_only=True)
class Machines:
    """An indexer and an answerer that share jobs, manifests and a store; the repository is on the indexer's disk."""

    repository: GitRepo
    indexer: TeamRepositories
    answerer: TeamRepositories
    segments: SharedSegments

    async def find(self, words: str, ref: NamedRef | None) -> str:
        """Search the code at a ref on the machine that answers; return the file of the first hit."""
        assert ref is not None
        code = await self.answerer.library.refs["shop"].pin(ref)
        assert code.repository == "shop"
        return (await code.search(words))[0].location.path


@pytest_asyncio.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    repository = GitRepo(tmp_path / "shop")
    for number in range(30):
        repository.write(f"parts/part_{number}.py", f"def part_{number}():\n    return {number}\n")
    repository.commit("Sell things")
    repository.branch("release-2")
    repository.write("money.py", OLD_PRICE)
    repository.commit("Count money")
    repository.checkout("main")
    jobs, manifests = LocalRefreshJobs(), ManifestFile(tmp_path / "manifests.sqlite")

    @asynccontextmanager
    async def open_machine(name: str, *, indexes: bool) -> AsyncIterator[tuple[TeamRepositories, SharedSegments]]:
        settings = Settings(home=tmp_path / name, repositories=(RepositoryTable(path=repository.root, name="shop"),))
        async with (
            open_segments(f"file://{tmp_path / 'bucket'}", tmp_path, manifests, cache_bytes=CACHE) as segments,
            open_team_repositories(
                settings, tmp_path, Unseen(), refreshes=jobs, segments=segments, indexes=indexes, answers=not indexes
            ) as stock,
        ):
            yield stock, segments

    async with (
        open_machine("indexer", indexes=True) as (indexer, _),
        open_machine("answerer", indexes=False) as (answerer, segments),
    ):
        await indexer.library.refresh("shop")
        await note_refs(indexer)
        yield Machines(repository=repository, indexer=indexer, answerer=answerer, segments=segments)


async def note_refs(indexer: TeamRepositories) -> None:
    """Let the indexer go over its branches once."""

    class Enough(Exception):
        pass

    async def stop(_: float) -> None:
        raise Enough

    with pytest.raises(Enough):
        await indexer.library.keep_branches(stop)


async def test_a_branch_is_read_where_only_its_name_is_known(machines: Machines) -> None:
    refs = machines.answerer.library.refs["shop"]
    branch = await refs.find("release-2")

    assert await machines.find("round price", branch) == "money.py"
    assert "money.py" not in {hit.path for hit in await (await machines.answerer.library.pin("shop")).files()}
    followed = await refs.find("main")
    assert followed is not None
    assert followed.is_followed


async def test_what_a_branch_shares_with_the_newest_commit_is_not_sent_again(machines: Machines) -> None:
    bucket = [each.size async for each in machines.segments.store.list("")]
    await machines.find("round price", await machines.answerer.library.refs["shop"].find("release-2"))

    assert sum([each.size async for each in machines.segments.store.list("")]) < 1.5 * sum(bucket)


async def test_a_commit_is_found_by_a_part_of_its_id_and_read_again_by_all_of_it(machines: Machines) -> None:
    sha = machines.repository.sha("release-2")
    ref = await machines.answerer.library.refs["shop"].find(sha[:9])

    assert await machines.find("round price", ref) == "money.py"
    again = await machines.answerer.library.pin(f"shop@{sha}")  # as a run does that another process continues with
    assert again.commit.sha == sha


async def test_a_branch_that_has_moved_is_read_where_it_is_now(machines: Machines) -> None:
    ref = await machines.answerer.library.refs["shop"].find("release-2")
    machines.repository.checkout("release-2")
    machines.repository.write("tax.py", "def add_tax(price):\n    return price\n")
    machines.repository.commit("Add taxes")
    machines.repository.checkout("main")

    assert await machines.find("add tax", ref) == "tax.py"


async def test_what_there_is_not_is_said_with_the_nearest_names(machines: Machines) -> None:
    library = machines.answerer.library
    with pytest.raises(UnknownRevision, match="release-2"):
        await library.pin("shop", at="release-3")
    with pytest.raises(IndexerError, match="no commit 'feedfac'"):
        await library.refs["shop"].find("feedfac")
    with pytest.raises(IndexerError, match="no pull request #12"):
        await library.refs["shop"].find("12", "pull request")


async def test_lines_are_read_at_commits_that_are_here(machines: Machines) -> None:
    refs, sha = machines.answerer.library.refs["shop"], machines.repository.sha("release-2")
    await machines.answerer.library.pin("shop")
    assert await refs.read_file(machines.repository.sha(), "parts/part_1.py") == ["def part_1():", "    return 1"]
    assert await refs.read_file(sha, "money.py") is None

    await machines.find("round price", await refs.find("release-2"))

    assert await refs.read_file(sha, "money.py") == OLD_PRICE.splitlines()
    assert (await (await machines.answerer.library.pin("shop", at="release-2")).history("money.py")).revisions
    assert await refs.read_file(sha, "../money.py") is None
    assert await refs.read_file("--output=x", "money.py") is None


async def test_a_sweep_keeps_what_is_published_beside_the_newest_commit(machines: Machines, tmp_path: Path) -> None:
    ref = await machines.answerer.library.refs["shop"].find("release-2")
    await machines.find("round price", ref)
    machines.repository.write("pay.py", "def pay():\n    pass\n")
    machines.repository.commit("Pay")
    await machines.indexer.library.refresh("shop", full=True)

    await sweep_segments(machines.segments.store, machines.segments.manifests, grace=timedelta(0))

    generations = LocalGenerations(tmp_path / "fresh", CACHE)
    fresh = replace(machines.segments, generations=generations).open_index(
        make_parts(), machines.repository.sha("release-2")
    )
    assert (await (await fresh.pin()).search("round price"))[0].location.path == "money.py"
    generations.close()


async def test_what_was_published_long_ago_beside_the_newest_commit_is_swept(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.segments.sweep.MAX_BESIDE", 0)
    ref = await machines.answerer.library.refs["shop"].find("release-2")
    await machines.find("round price", ref)

    assert await sweep_segments(machines.segments.store, machines.segments.manifests, grace=timedelta(0)) > 0
    assert list(await machines.segments.manifests.list_versions()) == ["shop"]
    assert await machines.find("round price", ref) == "money.py"
