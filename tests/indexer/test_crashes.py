"""A refresh that is killed: the old generation goes on serving, the next refresh completes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from indexer.index import CodeIndex
from indexer.reader import IndexReader
from tests.fakes.crashing import POINTS
from tests.fakes.repositories import GitRepo

GENERATIONS_BEFORE = 5  # enough for the refresh that is killed to have something to sweep


def code(number: int) -> str:
    return f'def handler_{number}():\n    """Handle event {number}."""\n    return {number}\n'


async def paths(reader: IndexReader) -> list[str]:
    return [entry.path for entry in await reader.files()]


async def indexed(repository: GitRepo, home: Path) -> None:
    index = await CodeIndex.open(repository.root, home=home)
    for number in range(GENERATIONS_BEFORE):
        repository.write("events/counter.py", code(number))
        repository.commit(f"change {number}")
        await index.refresh()
    await index.aclose()


def killed_refresh(repository: Path, home: Path, point: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fakes.crashing", str(repository), str(home), point]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("point", POINTS)
async def test_killed_anywhere_the_old_generation_serves_and_the_next_refresh_completes(
    tmp_path: Path, point: str
) -> None:
    repository, home = GitRepo(tmp_path / "shop"), tmp_path / "home"
    repository.write("events/stays.py", code(100))
    await indexed(repository, home)
    old = repository.sha()
    repository.write("events/new.py", code(200))
    repository.remove("events/counter.py")
    repository.commit("the change")
    died = await asyncio.to_thread(killed_refresh, repository.root, home, point)
    assert died.returncode == -signal.SIGKILL, died.stderr

    index = await CodeIndex.open(repository.root, home=home)
    try:
        served = await index.pin()
        if point.startswith(("sweep", "folder")):  # after the switch the new one serves
            assert await paths(served) == ["events/new.py", "events/stays.py"]
        else:
            assert served.commit.sha == old
            assert await paths(served) == ["events/counter.py", "events/stays.py"]
            assert (await served.search("handle event"))[0].location.path in await paths(served)
        report = await index.refresh()
        after = await index.pin()
        assert (report.commit, await paths(after)) == (repository.sha(), ["events/new.py", "events/stays.py"])
        assert {hit.location.path for hit in await after.search("handle event 200")} >= {"events/new.py"}
    finally:
        await index.aclose()
