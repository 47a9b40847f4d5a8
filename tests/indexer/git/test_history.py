"""The history of a file: commits and blame at the indexed commit, people without addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from indexer.errors import BadPattern, UnknownPath
from indexer.generations.reader import IndexReader
from indexer.git.history import format_person
from indexer.git.repository import Repository
from indexer.index import CodeIndex
from indexer.types import Revision
from tests.fakes.repositories import GitRepo


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/pay.py", "RETRIES = 3\n\n\ndef pay() -> None:\n    pass\n")
    repository.commit("Pay for orders")
    repository.write("shop/other.py", "x = 1\n")
    repository.commit("Something else")
    repository.rename("shop/pay.py", "shop/payments.py")
    repository.commit("Name the file in full")
    repository.write("shop/payments.py", "RETRIES = 5\n\n\ndef pay() -> None:\n    pass\n")
    repository.commit("Try more often")
    return repository


@asynccontextmanager
async def pinned(repository: GitRepo, home: Path) -> AsyncIterator[IndexReader]:
    index = await CodeIndex.open(repository.root, home=home)
    try:
        await index.refresh()
        yield await index.pin()
    finally:
        await index.aclose()


async def test_the_history_follows_a_file_through_its_names(repository: GitRepo, tmp_path: Path) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        history = await code.history("shop/payments.py", line=1)

    assert [one.subject for one in history.revisions] == ["Try more often", "Name the file in full", "Pay for orders"]
    assert history.complete
    assert history.last_changed == history.revisions[0]
    assert history.revisions[0] == Revision(
        sha=repository.sha(), author="Ada Example", committed_at=1_700_000_180, subject="Try more often"
    )


async def test_no_character_of_a_message_ends_the_history(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("shop/payments.py", "RETRIES = 7\n")
    repository.commit("Separate\x1erecords and\x1ffields")
    async with pinned(repository, tmp_path / "home") as code:
        history = await code.history("shop/payments.py", line=1)

    subjects = [one.subject for one in history.revisions]
    assert [subject.replace("\x1e", " ").replace("\x1f", " ") for subject in subjects[:2]] == [
        "Separate records and fields",
        "Try more often",
    ]


async def test_an_older_line_is_blamed_on_its_own_commit(repository: GitRepo, tmp_path: Path) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        history = await code.history("shop/payments.py", line=4, limit=1)

    assert history.last_changed is not None
    assert history.last_changed.subject == "Pay for orders"
    assert (len(history.revisions), history.complete) == (1, False)


@pytest.mark.parametrize(("path", "line"), [("nowhere.py", 0), ("../shop/other.py", 0), ("shop/other.py", 99)])
async def test_what_is_not_indexed_has_no_history(repository: GitRepo, tmp_path: Path, path: str, line: int) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        with pytest.raises(UnknownPath):
            await code.history(path, line=line)


async def test_lines_are_found_by_pattern_below_a_folder(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("docs/pay.md", "RETRIES is five.\n")
    repository.commit("Document it")
    async with pinned(repository, tmp_path / "home") as code:
        everywhere = await code.grep("RETRIES")
        below = await code.grep("RETRIES", path="shop/")
        with pytest.raises(UnknownPath):
            await code.grep("RETRIES", path="elsewhere")
        with pytest.raises(BadPattern):
            await code.grep("(")

    assert [line.location.path for line in everywhere.lines] == ["shop/payments.py", "docs/pay.md"]
    assert [line.text for line in below.lines] == ["RETRIES = 5"]


def newest_two(repository: GitRepo, target: Path) -> Path:
    """Clone the newest two commits."""
    repository.git("clone", "--quiet", "--depth=2", f"file://{repository.root}", str(target))
    return target


async def test_a_shallow_clone_claims_nothing_of_what_it_has_not_fetched(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("shop/payments.py", "RETRIES = 5\nDELAY = 3\n")
    repository.commit("Wait between retries")
    index = await CodeIndex.open(newest_two(repository, tmp_path / "shallow"), home=tmp_path / "home")
    try:
        await index.refresh()
        code = await index.pin()
        new, old = await code.history("shop/payments.py", line=2), await code.history("shop/payments.py", line=1)
        untouched = await code.history("shop/other.py", line=1)
    finally:
        await index.aclose()

    assert new.last_changed is not None
    assert new.last_changed.subject == "Wait between retries"
    assert old.last_changed is None
    assert ([one.subject for one in old.revisions], old.complete) == (["Wait between retries"], False)
    assert (untouched.revisions, untouched.complete, untouched.last_changed) == ((), False, None)


def test_a_repository_cannot_have_its_programs_run(repository: GitRepo, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    repository.write(".gitattributes", "*.py diff=evil\n")
    repository.commit("Set a trap")
    repository.git("config", "diff.evil.textconv", f"touch {trap}; cat")
    repository.git("config", "blame.ignoreRevsFile", str(tmp_path / "missing"))
    with Repository.open(repository.root) as opened:
        written = opened.history.blame(repository.sha(), "shop/payments.py", 1)
        assert written is not None
        assert written.sha != repository.sha()
        assert opened.history.log(repository.sha(), "shop/payments.py", limit=5)[0]

    assert not trap.exists()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Ada Example", "Ada Example"),
        ("ada@example.org", "ada"),
        ("Ada <ada@example.org>", "Ada"),
        ("", "someone"),
        ("<ada@example.org>", "someone"),
        ("Ada password=tR4vq0ZkPw7nYb2X", "Ada password=[REDACTED:secret]"),
    ],
)
def test_people_have_names_and_no_addresses(written: str, shown: str) -> None:
    assert format_person(written) == shown


@pytest.mark.exhaustive
async def test_a_commit_of_the_far_future_with_a_subject_of_megabytes_is_told_in_bounds(
    repository: GitRepo, tmp_path: Path
) -> None:
    repository.write("shop/payments.py", "RETRIES = 7\n")
    repository.commit_claiming(b"99999999999999999", subject=b"word " * 400_000, author=b"Ann " * 100_000)

    async with pinned(repository, tmp_path / "home") as reader:
        history = await reader.history("shop/payments.py", line=1)

    assert history.last_changed is not None
    for found in (history.last_changed, history.revisions[0]):
        assert len(found.subject) <= 500
        assert found.subject.startswith("word word")
        assert len(found.author) <= 500
        assert datetime.fromtimestamp(found.committed_at, UTC).year >= 2000
    assert datetime.fromtimestamp(reader.commit.committed_at, UTC).year >= 2000
    assert len(reader.commit.subject) <= 500
