"""A copy that commits are added to, while the repository that it is of stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.errors import RepositoryError
from indexer.git.scratch_copy import ScratchCopy
from tests.fakes.repositories import GitRepo


async def test_commits_go_to_the_copy_alone_and_stay_until_the_repository_moves_on(tmp_path: Path) -> None:
    repo, place = GitRepo(tmp_path / "shop"), tmp_path / "data" / "copy.git"
    repo.write("a.py", "a = 1\n")
    before = repo.commit()
    copy = await ScratchCopy.open(repo.root, place)
    sha = await copy.commit("notes/new file.md", b"one\n", author="Ann", message="Add a note")

    again = await ScratchCopy.open(repo.root, place)
    assert await again.read("notes/new file.md") == b"one\n"
    assert await again.read("notes") is None
    assert repo.sha() == before
    shown = repo.git(f"--git-dir={place}", "show", "--no-patch", "--format=%H %an %s %P", "HEAD")
    assert shown == f"{sha} Ann Add a note {before}"
    repo.commit()
    assert await (await ScratchCopy.open(repo.root, place)).read("notes/new file.md") is None


async def test_what_is_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError):
        await ScratchCopy.open(tmp_path / "nothing", tmp_path / "copy.git")
