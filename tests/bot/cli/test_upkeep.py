"""`citebot sweep`, and what `citebot status` tells of the disk, on real indexes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from indexer.store.data_folder import find_index_folder, list_index_folders
from tests.fakes.citebot import Citebot, converse
from tests.fakes.repositories import GitRepo


def other(tmp_path: Path, citebot: Citebot) -> Path:
    """Another repository, with an index."""
    repo = GitRepo(tmp_path / "other")
    repo.write("a.py", "def only_here() -> None:\n    pass\n")
    repo.commit()
    assert citebot("index", str(repo.root)).code == 0
    return repo.root


def configured(tmp_path: Path, *paths: Path) -> None:
    tables = "".join(f'[[repositories]]\npath = "{path}"\n' for path in paths)
    (tmp_path / "citebot.toml").write_text(tables, encoding="utf-8")


def names(home: Path) -> set[str]:
    return {folder.name for folder in list_index_folders(home)}


def test_status_tells_what_each_part_takes(citebot: Citebot, home: Path) -> None:
    assert converse(citebot, "where is parse_date defined?").code == 0
    (index,) = list_index_folders(home)

    data = citebot("status", "--json").answer["data"]

    assert data["indexes"] == [{"folder": index.name, "bytes": data["indexes"][0]["bytes"]}]
    assert data["bytes"] == data["indexes"][0]["bytes"] + data["conversations"] + data["messages"] + data["prompts"]
    assert data["conversations"] > 0
    assert data["free"] > 0
    assert data["unused_indexes"] is None
    assert "all data    " in citebot("status").out


@pytest.mark.exhaustive
def test_an_index_of_no_repository_is_named_and_removed_on_demand(
    citebot: Citebot, home: Path, shop: Path, tmp_path: Path
) -> None:
    left = find_index_folder(other(tmp_path, citebot))
    configured(tmp_path, shop)

    assert citebot("status", "--json").answer["data"]["unused_indexes"] == [left]
    told = citebot("status").out
    assert f"unused      {left} (" in told
    assert "`citebot sweep --unused-indexes` removes them" in told
    assert citebot("sweep").code == 0
    assert left in names(home)  # never without being asked
    assert citebot("sweep", "--unused-indexes", "--json").answer["removed_indexes"] == [left]
    assert names(home) == {find_index_folder(shop)}
    assert citebot("search", "parse date").code == 0


def test_without_configured_repositories_no_index_is_unused(citebot: Citebot, home: Path, tmp_path: Path) -> None:
    other(tmp_path, citebot)

    assert "as [[repositories]]. Nothing was removed." in citebot("sweep", "--unused-indexes").complaint
    assert len(names(home)) == 2


@pytest.mark.exhaustive
def test_where_a_repository_is_away_no_index_is_removed(
    citebot: Citebot, home: Path, shop: Path, tmp_path: Path
) -> None:
    away = other(tmp_path, citebot)
    configured(tmp_path, shop, away)
    away.rename(tmp_path / "moved")

    assert citebot("sweep", "--unused-indexes").code == 1
    assert len(names(home)) == 2
    done = citebot("status", "--json")
    assert json.loads(done.out)["data"]["unused_indexes"] is None
    assert "Which indexes are unused cannot be determined" in done.err


def test_a_sweep_outside_of_any_repository_sweeps_the_rest(
    citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CITEBOT_REPO")

    assert citebot("sweep").out.startswith("Swept: forgot 0 conversations, ")


@pytest.mark.parametrize("days", ["-1", "x", "36501", "nan"])
def test_days_that_are_none_are_refused_by_name(days: str, citebot: Citebot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETENTION_DAYS", days)

    assert "RETENTION_DAYS" in citebot("status").err
