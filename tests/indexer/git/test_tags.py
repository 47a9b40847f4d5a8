"""Tags: which ones are releases, the version that each names, and the release before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.errors import UnknownRevision
from indexer.git.repository import Repository
from indexer.git.tags import TagList, is_release, read_version
from tests.fakes.repositories import GitRepo


@pytest.mark.parametrize(
    ("name", "version", "is_finished"),
    [
        ("v1.2", (1, 2), True),
        ("1.2.0", (1, 2), True),
        ("jq-1.7.1", (1, 7, 1), True),
        ("release/2.0", (2,), True),
        ("@scope/package@3.1.4", (3, 1, 4), True),
        ("REL_1_2", (1, 2), True),
        ("5.3.0.Final", (5, 3), True),
        ("v2.0rc1", (2,), False),
        ("v2.0-beta.2", (2,), False),
        ("jq-1.8.2rc1", (1, 8, 2), False),
        ("nightly", None, False),
        ("", None, False),
    ],
)
def test_a_version_is_read_from_the_name_of_a_tag(
    name: str, version: tuple[int, ...] | None, is_finished: bool
) -> None:
    assert read_version(name) == version
    assert is_release(name) == is_finished


@pytest.fixture
def tags(tmp_path: Path) -> Iterator[TagList]:
    repository = GitRepo(tmp_path / "shop")
    for name in ("shop-1.9", "shop-1.10rc1", "shop-1.10.0", "tool-3.0", "nightly"):
        repository.write("a.py", f"NAME = {name!r}\n")
        repository.commit(name)
        repository.git("tag", name)
    repository.branch("maintenance", at="shop-1.9")
    repository.write("a.py", "FIXED = True\n")
    repository.commit("shop-1.9.1")
    repository.git("tag", "shop-1.9.1")
    repository.checkout("main")
    with Repository.open(repository.root) as opened:
        yield opened.tags


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("shop-1.9", "shop-1.9"),
        ("1.9", "shop-1.9"),
        ("v1.10", "shop-1.10.0"),
        ("SHOP-1.10.0", "shop-1.10.0"),
        ("version 1.10", "shop-1.10.0"),
        ("1.10rc1", "shop-1.10rc1"),
        ("tool-3", "tool-3.0"),
        ("nightly", "nightly"),
        ("maintenance", "maintenance"),
    ],
)
def test_a_tag_is_found_by_how_people_write_it(tags: TagList, written: str, name: str) -> None:
    assert tags.find(written).name == name


def test_an_unknown_version_is_told_with_those_that_are_known(tags: TagList) -> None:
    with pytest.raises(
        UnknownRevision, match=r"There is no tag, branch or commit '2\.0'\. The newest tags are shop-1\.9\.1"
    ):
        tags.find("2.0")


@pytest.mark.parametrize(
    ("name", "previous"),
    [("shop-1.10.0", "shop-1.9.1"), ("shop-1.10rc1", "shop-1.9.1"), ("shop-1.9", None), ("nightly", None)],
)
def test_the_release_before_is_the_next_lower_version(tags: TagList, name: str, previous: str | None) -> None:
    found = tags.find_previous(tags.find(name))

    assert (found.name if found else None) == previous


def test_releases_are_finished_versions_of_the_history(tags: TagList) -> None:
    assert [tag.name for tag in tags.list_releases("main")] == ["tool-3.0", "shop-1.10.0", "shop-1.9"]
