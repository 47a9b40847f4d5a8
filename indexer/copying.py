"""Copies databases and indexes that are in use, so that what is copied is whole and nobody has to wait."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from indexer.errors import StorageLocked
from indexer.storage import DataFolder, map_storage_errors

_TRIES = 5  # a refresh that sweeps what is being copied comes between at most so often
_CURRENT = "SELECT max(id) FROM generations WHERE retired_at IS NULL"


def copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database as it is at one moment, while others read and write it; raises `sqlite3.Error`."""
    uri = f"{source.absolute().as_uri()}?mode=rw"  # not to be made where it is missing
    with closing(sqlite3.connect(uri, uri=True)) as db, closing(sqlite3.connect(target)) as copy:
        db.backup(copy)
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(str(verdict))


def copy_index(source: Path, target: Path) -> None:
    """Copy an index at its newest generation, without the vector store, which is filled again from the generation.

    Raises `StorageError`.
    """
    for _ in range(_TRIES):
        shutil.rmtree(target, ignore_errors=True)
        try:
            _copy_data(DataFolder(source), DataFolder(target))
        except FileNotFoundError:  # swept meanwhile: there is a newer generation
            continue
        return
    raise StorageLocked(f"The index in {source} changes too fast to be copied. Try again in a while.")


def _copy_data(source: DataFolder, target: DataFolder) -> None:
    target.root.mkdir(parents=True)
    with map_storage_errors(source.catalog):
        copy_database(source.catalog, target.catalog)
        with closing(sqlite3.connect(target.catalog)) as db:
            (generation,) = db.execute(_CURRENT).fetchone()
    if generation is not None:
        target.snapshot(generation).mkdir(parents=True)
        for array in source.snapshot(generation).iterdir():
            shutil.copyfile(array, target.snapshot(generation) / array.name)
