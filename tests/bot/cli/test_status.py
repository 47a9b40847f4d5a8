"""`citebot status` where several repositories are configured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.repositories.status import describe_state
from indexer import WatchStatus
from tests.fakes.citebot import Citebot
from tests.fakes.parts import FakeIndex
from tests.fakes.repositories import GitRepo


@pytest.fixture
def several(shop: Path, tmp_path: Path) -> Path:
    """The shop, which is indexed; a site, which is not; and a folder that is missing."""
    site = GitRepo(tmp_path / "site")
    site.write("a.py", "x = 1\n")
    site.commit()
    tables = [("shop", shop), ("site", site.root), ("lost", tmp_path / "lost")]
    text = "".join(f'[[repositories]]\nname = "{name}"\npath = "{path}"\n' for name, path in tables)
    (tmp_path / "citebot.toml").write_text(text)
    return tmp_path


def test_all_repositories_are_told_with_their_states(citebot: Citebot, several: Path) -> None:
    done = citebot("status", "--json")

    assert done.code == 1  # one of them cannot be read
    told = {each["repository"]: each for each in json_of(done.out)["repositories"]}
    assert {name: each["state"] for name, each in told.items()} == {
        "shop": "current", "site": "not indexed", "lost": "failed",
    }  # fmt: skip
    assert told["shop"]["files"] > 0
    assert str(several / "lost") in told["lost"]["sentence"]


def test_a_repository_that_is_named_is_told_as_ever(citebot: Citebot, several: Path) -> None:
    told = citebot("status", "--json", "--repo", str(several / "site")).answer

    assert (told["repository"], told["commit"]) == ("site", None)
    assert "repositories" not in told


def test_people_read_the_state_of_each_repository(citebot: Citebot, several: Path) -> None:
    done = citebot("status")

    *blocks, data = done.out.strip().split("\n\n")
    assert data.startswith("all data")
    assert [block.splitlines()[-1].split()[1].rstrip(":") for block in blocks] == ["current", "not", "failed"]


async def test_what_a_watcher_says_of_a_repository_goes_before() -> None:
    away = WatchStatus(
        repository="site", state="host down", sentence="The host does not answer. It is tried again in 60 seconds.",
        branch=None, commit=None, indexed=None, looked_at=None, indexed_at=None, failures=1, next_look=60.0,
    )  # fmt: skip

    told = describe_state(await FakeIndex().status(), away)

    assert (told.state, told.sentence) == ("host down", away.sentence)


def json_of(text: str) -> dict[str, list[dict[str, Any]]]:
    read: dict[str, list[dict[str, Any]]] = json.loads(text)
    return read
