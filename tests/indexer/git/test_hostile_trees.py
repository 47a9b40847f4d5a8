"""Trees of git that are small to push and endless to read: refused with a sentence, within bounds."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from indexer.errors import RepositoryError
from indexer.git import git_command, repository
from indexer.git.repository import Repository
from tests.fakes.repositories import GitRepo

BREADTH, DEPTH = 10, 10  # as many files as people live on earth, in ten objects


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "repo")
    repo.write("a.py", "def a():\n    return 1\n")
    repo.commit()
    return repo


def test_a_tree_of_billions_of_files_is_refused(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_command, "_MAX_OUTPUT", 5_000_000)
    monkeypatch.setattr(repository, "_COMPARING", 0.2)
    old = repo.sha()
    new = repo.commit_nested(BREADTH, DEPTH)

    with Repository.open(repo.root) as opened:
        with pytest.raises(RepositoryError, match="too large to be read"):
            opened.files(new)
        assert opened.compare_commits(old, new) is None  # which has everything listed
        assert [entry.path for entry in opened.files(old).entries] == ["a.py"]


def test_a_tree_of_billions_of_empty_folders_is_refused(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_command, "_LONGEST", 1.0)
    new = repo.commit_nested(BREADTH, DEPTH, empty=True)

    with Repository.open(repo.root) as opened, pytest.raises(RepositoryError, match="too large to be read"):
        opened.files(new)


@pytest.mark.exhaustive
def test_one_large_gitattributes_in_many_folders_does_not_fill_memory(repo: GitRepo) -> None:
    for number in range(100):
        repo.write(f"folder{number}/.gitattributes", "# \n" * 330_000)
    repo.commit()

    with Repository.open(repo.root) as opened:
        tracemalloc.start()
        try:
            files = opened.files("HEAD").entries
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert len(files) == 101
    assert most < 40_000_000
