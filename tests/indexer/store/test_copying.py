"""Databases and indexes are copied whole while they are in use, or not at all."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from indexer.errors import StorageError, StorageLocked
from indexer.index import CodeIndex
from indexer.store.data_folder import DataFolder, copy_database, copy_index, list_index_folders
from tests.fakes.repositories import GitRepo

pytestmark = pytest.mark.exhaustive


async def indexed(tmp_path: Path) -> DataFolder:
    repo = GitRepo(tmp_path / "repo")
    repo.write("a.py", "def first() -> None:\n    pass\n")
    repo.commit()
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    try:
        await index.refresh()
    finally:
        await index.aclose()
    (folder,) = list_index_folders(tmp_path / "home")
    return DataFolder(tmp_path / "home" / "repositories" / folder.name)


async def test_an_index_is_copied_without_its_vector_store(tmp_path: Path) -> None:
    source = await indexed(tmp_path)

    copy_index(source.root, tmp_path / "copy")

    copy = DataFolder(tmp_path / "copy")
    assert set(copy.snapshots()) == {"1"}
    assert len(list(copy.snapshot(1).iterdir())) == len(list(source.snapshot(1).iterdir()))
    assert not copy.vectors.exists()


async def test_the_copy_of_an_index_that_grew_by_changes_needs_nothing_of_it(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "repo")
    for number in range(40):
        repo.write(f"part_{number}.py", f"def part_{number}() -> None:\n    pass\n")
    repo.commit()
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    for change in ("added", "changed"):
        await index.refresh()
        repo.write("late.py", f"def {change}() -> None:\n    pass\n")
        repo.commit()
    await index.refresh()
    before = (await index.pin()).snapshot
    await index.aclose()
    (folder,) = list_index_folders(tmp_path / "home")

    copy_index(tmp_path / "home" / "repositories" / folder.name, tmp_path / "copy" / "repositories" / folder.name)
    shutil.rmtree(tmp_path / "home")

    copy = await CodeIndex.open(repo.root, home=tmp_path / "copy")
    try:
        assert await copy.is_current()
        after = (await copy.pin()).snapshot
        assert [each.name for each in after.segments] == [each.name for each in before.segments]
        assert len(after.segments) > 1
        assert (await (await copy.pin()).search("changed"))[0].location.path == "late.py"
        assert (await copy.refresh()).changed == 0
    finally:
        await copy.aclose()


async def test_only_the_newest_generation_is_copied(tmp_path: Path) -> None:
    source = await indexed(tmp_path)
    shutil.copytree(source.snapshot(1), source.snapshot(2))

    copy_index(source.root, tmp_path / "copy")

    assert set(DataFolder(tmp_path / "copy").snapshots()) == {"1"}


async def test_an_index_that_is_never_at_rest_is_a_sentence(tmp_path: Path) -> None:
    source = await indexed(tmp_path)
    shutil.rmtree(source.snapshot(1))

    with pytest.raises(StorageLocked, match="changes too fast"):
        copy_index(source.root, tmp_path / "copy")


async def test_a_damaged_catalog_is_a_sentence(tmp_path: Path) -> None:
    source = await indexed(tmp_path)
    source.catalog.write_bytes(b"no database at all" * 100)

    with pytest.raises(StorageError, match="is damaged"):
        copy_index(source.root, tmp_path / "copy")


def test_a_database_with_a_damaged_page_is_not_passed_on(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE t (text TEXT)")
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 100)
    data = bytearray((tmp_path / "a.db").read_bytes())
    data[9 * 4096 : 9 * 4096 + 200] = b"\xff" * 200
    (tmp_path / "a.db").write_bytes(data)

    with pytest.raises(sqlite3.DatabaseError):
        copy_database(tmp_path / "a.db", tmp_path / "b.db")


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        copy_database(tmp_path / "a.db", tmp_path / "b.db")
    assert not (tmp_path / "a.db").exists()
