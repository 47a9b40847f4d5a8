"""From a push to an answer's commit, with every real part between the host and the index."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.agent import Agent
from agent.lookups.results import ReadCoverage
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer, CodeLibrary, CodeSearch
from bot.surfaces.code_lookups import CodeLookups
from bot.surfaces.principals import Principal
from indexer.errors import RemoteError
from indexer.generations.reader import IndexReader
from indexer.remotes.remote_repository import RemoteRepository
from indexer.secrets import redact_secrets
from indexer.watcher import WatchIntervals
from tests.bot.surfaces.cores import look_up
from tests.fakes import pushes
from tests.fakes.clock import FakeClock
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.repositories import GitRepo, run_git
from tests.fakes.watched import Watched, watched
from tests.waiting import expect, wait_for

PUSHES = 30
ANN = Principal(name="slack:ann", platform="slack", person="ann")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[GitHost]:
    async with serving(GitHost(tmp_path / "host", looks_around=False)) as host:
        yield host


@pytest.fixture
def work(tmp_path: Path, host: GitHost) -> GitRepo:
    """A working copy whose origin is the host's repository."""
    work = GitRepo(tmp_path / "work")
    work.write("shop.py", "def sell() -> None: ...\n")
    work.commit("first")
    work.git("remote", "add", "origin", str(published(work.root, host, "team/shop.git")))
    return work


def shop(host: GitHost, **options: str) -> RemoteRepository:
    return RemoteRepository(name="shop", url=f"{host.url}/team/shop.git", **options)  # type: ignore[arg-type]


async def pushed(work: GitRepo, *arguments: str) -> str:
    """Commit what was written and push it; the commit."""
    commit = await asyncio.to_thread(work.commit)
    await push(work, *(arguments or ("HEAD",)))
    return commit


async def push(work: GitRepo, *arguments: str) -> None:
    await asyncio.to_thread(work.git, "push", "--quiet", "origin", *arguments)


async def paths(reader: IndexReader) -> list[str]:
    return [entry.path for entry in await reader.files()]


async def test_a_push_is_searchable_soon_after_the_webhook_and_readers_keep_their_commit(
    work: GitRepo, host: GitHost, tmp_path: Path
) -> None:
    host.password = "t0ken"
    remote = RemoteRepository(name="shop", url=f"{host.url}/team/shop.git", token=SecretStr("t0ken"))
    async with watched(remote, tmp_path / "home") as team:
        old = await team.indexed(work.sha())
        work.write("till.py", "def open_till() -> None: ...\n")
        await team.told(pushes.github(after=await pushed(work)))

        new = await team.indexed(work.sha())

        assert (await paths(new), await paths(old)) == (["shop.py", "till.py"], ["shop.py"])
        assert (await new.search("open_till"))[0].location.path == "till.py"
        assert (await team.library.status("shop")).repository == "shop"


class Held:
    """A library whose answers have their commit already and are kept waiting."""

    def __init__(self, library: CodeLibrary) -> None:
        self._library = library
        self.pinned = asyncio.Event()
        self.released = asyncio.Event()

    async def pin(self, repository: str | None = None) -> CodeSearch:
        code = await self._library.pin(repository)
        self.pinned.set()
        await wait_for(self.released.wait(), "self.released")
        return code


async def answered(agent: Agent, thread: str) -> Answer:
    events = [event async for event in agent.ask("where is sell defined?", thread=thread)]
    answer = events[-1].payload["answer"]
    assert isinstance(answer, Answer)
    return answer


async def test_a_push_during_an_answer_leaves_it_its_commit(work: GitRepo, host: GitHost, tmp_path: Path) -> None:
    async with watched(shop(host), tmp_path / "home") as team, open_saver(tmp_path / "turns.db") as saver:
        await team.indexed(old := work.sha())
        held = Held(team.library)
        agent = Agent(held, saver, redact_secrets)
        answering = asyncio.create_task(answered(agent, "one"))
        await wait_for(held.pinned.wait(), "held.pinned")
        work.rename("shop.py", "trade.py")
        await team.told(pushes.github(after=(new := await pushed(work))))
        await team.indexed(new)
        held.released.set()

        first, second = await answering, await answered(agent, "two")

    assert (first.commit, {(cited.commit, cited.path) for cited in first.citations}) == (old, {(old, "shop.py")})
    assert (second.commit, {(cited.commit, cited.path) for cited in second.citations}) == (new, {(new, "trade.py")})


async def test_a_no_waits_for_a_push_that_was_just_told_of_and_looks_again(
    work: GitRepo, host: GitHost, tmp_path: Path
) -> None:
    async with watched(shop(host), tmp_path / "home") as team, open_saver(tmp_path / "turns.db") as saver:
        await team.indexed(work.sha())
        work.write("till.py", "def open_till() -> None: ...\n")
        new = await pushed(work)
        await team.told(pushes.github(after=new))
        agent = Agent(team.library, saver, redact_secrets)
        events = [event async for event in agent.ask("where is open_till defined?", thread="one")]

        work.write("bank.py", "def pay_in() -> None: ...\n")
        newer = await pushed(work)
        await team.told(pushes.github(after=newer))
        found = await look_up(CodeLookups(library=team.library), ANN, "find_symbol", name="pay_in")
        never = await look_up(CodeLookups(library=team.library), ANN, "find_symbol", name="pay_out")

    answer = events[-1].payload["answer"]
    assert (answer.commit, answer.found, [cited.path for cited in answer.citations]) == (new, True, ["till.py"])
    assert (found.commit, [symbol.path for symbol in found.symbols], found.coverage) == (newer, ["bank.py"], None)
    assert never.coverage == ReadCoverage(commit=newer, files=3, left_out={})


async def test_a_force_push_is_indexed_and_its_readers_keep_what_is_gone(
    work: GitRepo, host: GitHost, tmp_path: Path
) -> None:
    work.write("till.py", "def open_till() -> None: ...\n")
    await pushed(work)
    async with watched(shop(host), tmp_path / "home") as team:
        old = await team.indexed(lost := work.sha())
        work.git("reset", "--quiet", "--hard", "HEAD~1")
        work.write("bank.py", "def pay_in() -> None: ...\n")
        await team.told(pushes.github(after=await pushed(work, "--force", "HEAD")))

        new = await team.indexed(work.sha())

        assert (await paths(new), await paths(old)) == (["bank.py", "shop.py"], ["shop.py", "till.py"])
        assert (team.status.state, lost[:7] in team.status.sentence) == ("force-pushed", True)
        assert (await old.read("till.py")).text == "def open_till() -> None: ..."
        assert (await team.library.status("shop")).commits_behind == 0


async def test_a_deleted_branch_is_told_and_answered_from_until_it_is_back(
    work: GitRepo, host: GitHost, tmp_path: Path
) -> None:
    await push(work, "HEAD:refs/heads/release")
    async with watched(shop(host, branch="release"), tmp_path / "home") as team:
        await team.indexed(old := work.sha())
        await push(work, "--delete", "release")
        await team.told(pushes.github(ref="refs/heads/release", after=pushes.NONE))
        await team.until(lambda status: status.state == "branch gone")

        assert "has no branch release" in team.status.sentence
        assert (await team.library.pin("shop")).commit.sha == old
        new = await pushed(work, "HEAD:refs/heads/release")
        await team.told(pushes.github(ref="refs/heads/release", after=new))
        assert (await team.indexed(new)).commit.branch == "release"
        assert (team.status.state, team.status.sentence) == ("ready", "")


async def test_a_renamed_default_branch_is_indexed_under_its_new_name(
    work: GitRepo, host: GitHost, tmp_path: Path
) -> None:
    async with watched(shop(host), tmp_path / "home") as team:
        await team.indexed(work.sha())
        bare = host.root / "team/shop.git"
        run_git(bare, "branch", "--move", "main", "trunk")
        run_git(bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
        new = await pushed(work, "HEAD:trunk")
        await team.told(pushes.github(ref="refs/heads/trunk", after=new, default="trunk"))

        assert (await team.indexed(new)).commit.branch == "trunk"
        assert (team.status.branch, team.status.state) == ("trunk", "ready")


async def test_a_repository_without_commits_says_so_and_is_indexed_with_its_first(
    host: GitHost, tmp_path: Path
) -> None:
    empty = GitRepo(tmp_path / "empty")
    empty.git("remote", "add", "origin", str(published(empty.root, host, "team/shop.git")))
    async with watched(shop(host), tmp_path / "home") as team:
        await team.until(lambda status: status.state == "empty")
        with pytest.raises(RemoteError, match="has no commit yet"):
            await team.library.pin("shop")
        empty.write("shop.py", "def sell() -> None: ...\n")
        await team.told(pushes.github(after=await pushed(empty)))

        assert await paths(await team.indexed(empty.sha())) == ["shop.py"]


@pytest.mark.exhaustive
async def test_thirty_pushes_in_ten_seconds_are_a_few_refreshes_and_the_last_wins(
    work: GitRepo, host: GitHost, tmp_path: Path
) -> None:
    clock = FakeClock()
    async with watched(shop(host), tmp_path / "home", clock=clock, pace=WatchIntervals()) as team:
        await team.indexed(work.sha())
        for number in range(PUSHES):
            work.write("counter.py", f"COUNT = {number}\n")
            await team.told(pushes.github(after=await pushed(work)))
            await clock.advance(10 / PUSHES)
        await passed(clock, team, work.sha())
        reader = await team.index.pin()

        assert (await reader.read("counter.py")).text == f"COUNT = {PUSHES - 1}"
        assert 1 <= len(team.counted.reports) - 1 <= 7


async def passed(clock: FakeClock, team: Watched, commit: str) -> None:
    """Let the clock run, with real time for git, until a commit is indexed."""
    async with expect("team.status.indexed == commit"):
        while team.status.indexed != commit:
            await clock.advance(0.5)
            await asyncio.sleep(0.02)
