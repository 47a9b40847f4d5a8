"""Working copies on disk: what a run that was killed has left is removed, once none of its commands is alive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.errors import WorkingCopyError
from agent.goals import workspace
from agent.goals.workspace import open_copy
from agent.sandbox import box_folders
from agent.sandbox.box_folders import choose_folder
from indexer.git.repository import Repository
from tests.fakes.repositories import GitRepo


@pytest.fixture
def origin(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "origin")
    repo.write("a.py", "x = 1\n")
    repo.commit()
    return repo


class LeftBox:
    """A box that is still at work in the copy of a citebot that was killed."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        box = copy / "box-left"
        box.mkdir(parents=True)
        os.mkfifo(box / "held")
        self._pipe = os.fdopen(os.open(box / "held", os.O_RDONLY | os.O_NONBLOCK), "rb")

    def end(self, _seconds: float = 0.0) -> None:
        assert self.copy.exists()
        self._pipe.close()


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LeftBox]:
    monkeypatch.setattr(box_folders, "_OF_ROOT", tmp_path / "sandbox")
    box = LeftBox(choose_folder(tmp_path) / "copy-left")
    yield box
    box._pipe.close()


async def test_a_copy_is_made_once_the_commands_of_a_killed_run_have_ended(
    origin: GitRepo, tmp_path: Path, left: LeftBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.sandbox.box_folders.time.sleep", left.end)

    with Repository.open(origin.root) as repository:
        async with open_copy(repository, tmp_path, origin.sha()) as copy:
            assert (copy.tree / "a.py").read_text() == "x = 1\n"

    assert left._pipe.closed
    assert not left.copy.exists()


async def test_a_command_that_does_not_end_is_told(
    origin: GitRepo, tmp_path: Path, left: LeftBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "_PATIENCE", -1.0)

    with Repository.open(origin.root) as repository, pytest.raises(WorkingCopyError, match="still at work"):
        async with open_copy(repository, tmp_path, origin.sha()):
            pass

    assert left.copy.exists()
