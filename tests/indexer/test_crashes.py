"""A refresh that is killed: the old generation is still served, the next refresh completes."""

from __future__ import annotations

import asyncio
import shutil
import signal
from copy import copy
from pathlib import Path

import pytest

from indexer.errors import CommitSetAside
from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.types import Progress
from tests.fakes.crashing import (
    POINTS,
    REMOTE_POINTS,
    is_switched,
    refresh_and_die,
    refresh_long_and_die,
    refresh_shortly_and_die,
)
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.parsers import NotingPool
from tests.fakes.repositories import GitRepo
from tests.forks import ForkServer
from tests.selection import mark_all_but

GENERATIONS_BEFORE = 5  # enough for the refresh that is killed to have something to sweep
BEFORE, AFTER = ["events/counter.py", "events/stays.py"], ["events/new.py", "events/stays.py"]


async def die(forks: ForkServer, repository: Path | str, home: Path, point: str) -> None:
    """Have a process refresh, which is killed and does not end on its own."""
    assert await forks.end_of(refresh_and_die, str(repository), str(home), point) == -signal.SIGKILL


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitRepo, Path]:
    """A repository with its index in the folder `home` beside it, and a copy of both to begin from again."""
    folder = tmp_path_factory.mktemp("prepared")
    repository = GitRepo(folder / "shop")
    repository.write("events/stays.py", code(100))
    asyncio.run(index_often(repository, folder / "home"))
    return repository, Path(shutil.copytree(folder, tmp_path_factory.mktemp("kept") / "copy"))


@pytest.fixture
def repository(prepared: tuple[GitRepo, Path]) -> GitRepo:
    """The repository and its index as they were; an index knows the path of its repository."""
    made, kept = prepared
    shutil.rmtree(made.root.parent)
    shutil.copytree(kept, made.root.parent)
    return copy(made)


@pytest.fixture
def home(repository: GitRepo) -> Path:
    return repository.root.parent / "home"


def code(number: int) -> str:
    return f'def handler_{number}():\n    """Handle event {number}."""\n    return {number}\n'


async def paths(reader: IndexReader) -> list[str]:
    return [entry.path for entry in await reader.files()]


async def index_often(repository: GitRepo, home: Path) -> None:
    index = await CodeIndex.open(repository.root, home=home)
    for number in range(GENERATIONS_BEFORE):
        repository.write("events/counter.py", code(number))
        repository.commit(f"change {number}")
        await index.refresh()
    await index.aclose()


def changed(repository: GitRepo) -> str:
    """Commit what the refresh that is killed is for."""
    repository.write("events/new.py", code(200))
    repository.remove("events/counter.py")
    return repository.commit("the change")


async def assert_serves(reader: IndexReader, commit: str, expected: list[str]) -> None:
    assert (reader.commit.sha, await paths(reader)) == (commit, expected)
    assert (await reader.search("handle event"))[0].location.path in expected


@pytest.mark.parametrize("point", mark_all_but(["vectors<"], POINTS))
async def test_killed_anywhere_the_old_generation_serves_and_the_next_refresh_completes(
    repository: GitRepo, home: Path, forks: ForkServer, point: str
) -> None:
    old = repository.sha()
    new = changed(repository)
    await die(forks, repository.root, home, point)

    index = await CodeIndex.open(repository.root, home=home)
    try:
        served = await index.pin()
        await assert_serves(served, *((new, AFTER) if is_switched(point) else (old, BEFORE)))
        report = await index.refresh()
        after = await index.pin()
        assert report.commit == new
        await assert_serves(after, new, AFTER)
        assert {hit.location.path for hit in await after.search("handle event 200")} >= {"events/new.py"}
    finally:
        await index.aclose()


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", REMOTE_POINTS)
async def test_killed_between_the_host_and_the_index_the_next_start_completes(
    repository: GitRepo, tmp_path: Path, forks: ForkServer, point: str
) -> None:
    home = tmp_path / "home"
    repository.write("events/counter.py", code(0))
    old = repository.commit()
    async with serving(GitHost(tmp_path / "host", looks_around=False)) as host:
        repository.git("remote", "add", "origin", str(published(repository.root, host, "shop.git")))
        clone = RemoteClone(RemoteRepository(name="shop", url=f"{host.url}/shop.git"), home)
        await clone.newest()
        index = await CodeIndex.open(clone.path, home=home)
        await index.refresh()
        for _ in range(GENERATIONS_BEFORE if is_switched(point) else 0):
            await index.refresh(full=True)
        await index.aclose()
        new = changed(repository)
        repository.git("push", "--quiet", "origin", "HEAD")
        await die(forks, clone.remote.url, home, point)

        again = RemoteClone(clone.remote, home)
        await again.prepare()
        index = await CodeIndex.open(again.path, home=home)
        try:
            await assert_serves(await index.pin(), *((new, AFTER) if is_switched(point) else (old, BEFORE)))
            assert (await again.newest()).commit == (await index.refresh()).commit == new
            await assert_serves(await index.pin(), new, AFTER)
        finally:
            await index.aclose()


async def test_a_commit_that_ends_two_processes_is_set_aside_until_the_next_one(
    repository: GitRepo, home: Path, forks: ForkServer
) -> None:
    old = repository.sha()
    new = changed(repository)
    for _ in range(2):
        await die(forks, repository.root, home, "chunks>")

    index = await CodeIndex.open(repository.root, home=home)
    try:
        for _ in range(2):
            with pytest.raises(CommitSetAside, match=f"Indexing {new[:7]} has ended citebot 2 times"):
                await index.refresh()
        await assert_serves(await index.pin(), old, BEFORE)
        repository.write("events/newer.py", code(300))
        newer = repository.commit("the next one")
        assert (await index.refresh()).commit == newer
    finally:
        await index.aclose()


async def test_a_long_refresh_that_is_killed_goes_on_from_what_it_has_parsed(
    repository: GitRepo, home: Path, forks: ForkServer
) -> None:
    for number in range(40):
        repository.write(f"events/new_{number}.py", code(200 + number))
    repository.commit("many")
    # The second gets further, however soon it is killed, so it is not the commit that ends processes.
    for refresh, point in ((refresh_long_and_die, "file>"), (refresh_shortly_and_die, "vectors<")):
        assert await forks.end_of(refresh, str(repository.root), str(home), point) == -signal.SIGKILL

    parsers = NotingPool()
    index = await CodeIndex.open(repository.root, home=home, parser_pool=parsers)
    try:
        report = await index.refresh()
        assert (report.files, parsers.given) == (42, [])
        assert not [*index.folder.root.glob("parsed.*")]
        hits = await (await index.pin()).search("handle event 239")
        assert "events/new_39.py" in {hit.location.path for hit in hits}
    finally:
        await index.aclose()
        parsers.close()


@pytest.mark.exhaustive
async def test_a_full_index_gives_a_commit_another_chance(repository: GitRepo, home: Path, forks: ForkServer) -> None:
    new = changed(repository)
    for _ in range(2):
        await die(forks, repository.root, home, "chunks>")

    index = await CodeIndex.open(repository.root, home=home)
    try:
        assert (await index.refresh(full=True)).commit == new
        await assert_serves(await index.pin(), new, AFTER)
    finally:
        await index.aclose()


async def test_a_refresh_that_is_stopped_or_fails_has_not_ended_anything(repository: GitRepo, tmp_path: Path) -> None:
    def stop(_: Progress) -> None:
        raise InterruptedError

    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        for _ in range(3):
            with pytest.raises(InterruptedError):
                await index.refresh(progress=stop)
        assert (await index.refresh()).commit == repository.sha()
    finally:
        await index.aclose()
