"""Lists what is not committed yet, and what of a commit is not indexed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.evidence.coverage import find_left_out
from indexer.git.repository import Repository
from indexer.index import CodeIndex
from indexer.types import Coverage, LeftOut
from tests.fakes.repositories import GitRepo
from tests.indexer.git.test_history import pinned

PATHS = ["pay.py", "lines.py", "gone.py", "same.py", "pipe.py", "nowhere.py"]


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    repository = GitRepo(tmp_path / "shop")
    for path in PATHS[:5]:
        repository.write(path, "A = 1\nB = 2\n")
    repository.commit()
    return repository


def list_uncommitted(root: Path) -> tuple[str, ...]:
    with Repository.open(root) as opened:
        return opened.working_tree.list_uncommitted(PATHS)


def test_files_that_differ_from_their_commit_are_listed(repository: GitRepo) -> None:
    repository.write("pay.py", "A = 1\nB = 3\n")
    repository.write("lines.py", "A = 1\r\nB = 2\r\n")  # as a checkout on Windows writes them
    repository.remove("gone.py")
    repository.remove("pipe.py")
    os.mkfifo(repository.root / "pipe.py")
    repository.write("nowhere.py", "new\n")

    assert sorted(list_uncommitted(repository.root)) == ["gone.py", "pay.py", "pipe.py"]


def test_a_bare_repository_has_no_working_tree(repository: GitRepo, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(tmp_path / "bare"))

    assert list_uncommitted(tmp_path / "bare") == ()


def test_looking_runs_nothing_that_the_repository_configures(repository: GitRepo, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    repository.write(".gitattributes", "*.py filter=evil\n")
    repository.git("config", "filter.evil.clean", f"touch {trap}; cat")
    repository.write("pay.py", "A = 1\nB = 3\n")

    assert list_uncommitted(repository.root) == ("pay.py",)
    assert not trap.exists()


async def test_the_drift_of_an_answer_names_what_is_not_committed(repository: GitRepo, tmp_path: Path) -> None:
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        report = await index.refresh()
        before = await index.drift(report.commit, ["pay.py"])
        repository.write("pay.py", "A = 2\n")
        after = await index.drift(report.commit, ["pay.py", "same.py"])
    finally:
        await index.aclose()

    assert (before.uncommitted, after.uncommitted) == ((), ("pay.py",))


async def test_a_branch_that_is_not_checked_out_has_no_uncommitted_changes(repository: GitRepo, tmp_path: Path) -> None:
    repository.branch("topic")
    repository.write("pay.py", "A = 2\n")
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", ref="refs/heads/main")
    try:
        report = await index.refresh()
        drift = await index.drift(report.commit, ["pay.py"])
    finally:
        await index.aclose()

    assert (drift.behind, drift.uncommitted) == (0, ())


async def test_everything_uncommitted_is_named_beside_a_negative(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("vendor/lib.py", "def charge_card(): ...\n")
    repository.commit()
    async with pinned(repository, tmp_path / "home") as code:
        before = await code.coverage("charge_card")
        repository.write("pay.py", "A = 2\n")
        repository.write("new.py", "B = 1\n")
        after = await code.coverage("charge")

    vendored = (LeftOut(path="vendor/lib.py", reason="vendored"),)
    assert before == Coverage(files=before.files, skipped={"vendored": 1}, holding=vendored)
    assert (after.uncommitted, after.holding) == (("pay.py", "new.py"), ())


async def test_secret_files_are_counted_and_never_looked_into(repository: GitRepo, tmp_path: Path) -> None:
    repository.write(".env", "TOKEN=hunter2\n")
    repository.commit()
    async with pinned(repository, tmp_path / "home") as code:
        coverage = await code.coverage("hunter2")

    assert (coverage.skipped, coverage.holding) == ({"secret-bearing": 1}, ())


async def test_a_submodule_is_among_what_is_left_out(repository: GitRepo, tmp_path: Path) -> None:
    other = GitRepo(tmp_path / "other")
    other.write("src/bank.c", "int bank;\n")
    other.commit()
    repository.submodule("libs/bank", other)
    repository.commit()
    async with pinned(repository, tmp_path / "home") as code:
        found = [
            await find_left_out(code, path)
            for path in ("libs/bank", "libs/bank/src/bank.c", "libs/other.c", "../libs/bank", "pay.py", "", "-x/--y")
        ]

    assert found == [LeftOut(path="libs/bank", reason="submodule")] * 2 + [None] * 5
