"""Commit messages are read for the files they touched: the commits that count, and the words that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.git.repository import Repository
from indexer.types import CommitMessage
from tests.fakes.repositories import GitRepo, run_git


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "shop")
    repo.write("pay.py", "RETRIES = 3\n")
    repo.write("shop/über uns.py", "x = 1\n")
    repo.commit("Pay for orders")
    return repo


def read(repo: GitRepo, *, since: str = "") -> list[CommitMessage] | None:
    with Repository.open(repo.root) as repository:
        return repository.commit_messages(repo.sha(), since=since)


def test_a_commit_is_read_with_its_message_and_its_files(repo: GitRepo) -> None:
    assert read(repo) == [CommitMessage(subject="Pay for orders", body="", paths=("pay.py", "shop/über uns.py"))]


def test_commits_without_files_and_merges_are_passed_over(repo: GitRepo) -> None:
    repo.branch("side")
    repo.write("side.py", "y = 1\n")
    repo.commit("Beside\n\nA body of\ntwo lines")
    repo.checkout("main")
    repo.commit("Nothing changed")
    repo.git("merge", "--quiet", "--no-ff", "-m", "Merge the side", "side")

    messages = read(repo)

    assert messages is not None
    assert [(one.subject, one.body.strip()) for one in messages] == [
        ("Beside", "A body of\ntwo lines"),
        ("Pay for orders", ""),
    ]


def test_a_commit_of_very_many_files_says_nothing_of_them(repo: GitRepo) -> None:
    for number in range(26):
        repo.write(f"many/{number}.py", "x = 1\n")
    repo.commit("Reformat everything")
    repo.write("pay.py", "RETRIES = 4\n")
    repo.commit("Try more often")

    assert [one.subject for one in read(repo) or ()] == ["Try more often", "Pay for orders"]


def test_secrets_and_people_are_left_out_of_messages(repo: GitRepo) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    repo.write("pay.py", "RETRIES = 5\n")
    repo.commit(f"Use {token}\n\nBecause {token} works.\n\nSigned-off-by: Ann Example <ann@example.org>")

    newest = (read(repo) or [])[0]

    assert token not in newest.subject + newest.body
    assert "works" in newest.body
    assert "Ann" not in newest.body


def test_only_commits_since_another_one_are_read(repo: GitRepo) -> None:
    before = repo.sha()
    repo.write("pay.py", "RETRIES = 6\n")
    repo.commit("Try even more often")

    assert [one.subject for one in read(repo, since=before) or ()] == ["Try even more often"]


def test_a_commit_that_did_not_lead_here_is_told_from_one_with_nothing_new(repo: GitRepo) -> None:
    before = repo.sha()
    assert read(repo, since=before) == []
    repo.git("commit", "--quiet", "--amend", "--message", "Pay for all orders")

    assert read(repo, since=before) is None
    assert read(repo, since="0" * 40) is None


def test_the_oldest_commit_of_a_shallow_clone_is_not_taken_for_the_author_of_everything(
    repo: GitRepo, tmp_path: Path
) -> None:
    for retries in (7, 8):
        repo.write("pay.py", f"RETRIES = {retries}\n")
        repo.commit(f"Try {retries} times")
    run_git(tmp_path, "clone", "--quiet", "--depth=2", repo.root.as_uri(), "shallow")

    with Repository.open(tmp_path / "shallow") as shallow:
        messages = shallow.commit_messages(repo.sha())

    assert [one.subject for one in messages or ()] == ["Try 8 times"]


def test_a_message_of_many_bytes_is_cut(repo: GitRepo) -> None:
    repo.write("pay.py", "RETRIES = 9\n")
    repo.commit("Try\n\n" + "again " * 10_000)

    assert len((read(repo) or [])[0].body) <= 4_000
