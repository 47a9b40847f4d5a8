"""The contract of every vector store, then what Chroma's folder can suffer."""

from __future__ import annotations

import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.errors import DamagedVectors, MissingVectors, StorageUnwritable
from indexer.store import vectors
from indexer.store.chroma_server import ServerVectors
from indexer.store.vectors import BatchSize, ChromaCollection, ChromaVectors, FloatArray
from tests.fakes.chroma_server import running_chroma

DIMENSIONS = 8
KEYS = [f"key{number}" for number in range(12)]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Chroma server."""
    with running_chroma(tmp_path_factory.mktemp("chroma-server")) as url:
        yield url


def open_folder(request: pytest.FixtureRequest) -> ChromaCollection:
    return ChromaVectors(request.getfixturevalue("tmp_path"), "vectors", DIMENSIONS)


def open_server(request: pytest.FixtureRequest) -> ChromaCollection:
    return ServerVectors(request.getfixturevalue("server"), f"vectors-{uuid.uuid4().hex}", DIMENSIONS)


@pytest.fixture(params=[open_folder, pytest.param(open_server, marks=pytest.mark.exhaustive)])
def store(request: pytest.FixtureRequest) -> Iterator[ChromaCollection]:
    opened: ChromaCollection = request.param(request)
    yield opened
    opened.close()


def units(count: int, seed: int = 0) -> FloatArray:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    normalised: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normalised


# --- the contract


def test_rows_come_back_in_the_order_they_are_asked_for(store: ChromaCollection) -> None:
    rows = units(3)
    store.add(["a", "b", "c"], rows)
    np.testing.assert_allclose(store.get(["c", "a", "c"]), rows[[2, 0, 2]], atol=1e-6)
    assert store.get(["b"]).dtype == np.float32


def test_a_row_added_again_takes_the_place_of_the_first(store: ChromaCollection) -> None:
    first, second = units(2)
    store.add(["a"], first[None])
    store.add(["a"], first[None])
    assert store.count() == 1
    store.add(["a"], second[None])
    np.testing.assert_allclose(store.get(["a"]), second[None], atol=1e-6)


def test_of_a_key_given_twice_the_last_row_stays(store: ChromaCollection) -> None:
    rows = units(3)
    store.add(["a", "b", "a"], rows)
    assert store.count() == 2
    np.testing.assert_allclose(store.get(["a", "b"]), rows[[2, 1]], atol=1e-6)


def test_only_keys_without_a_vector_are_missing(store: ChromaCollection) -> None:
    store.add(["a", "b"], units(2))
    assert store.find_missing(["a", "x", "b", "y", "x"]) == {"x", "y"}


def test_asking_for_a_missing_key_names_it(store: ChromaCollection) -> None:
    store.add(["a"], units(1))
    with pytest.raises(MissingVectors, match="'nowhere'"):
        store.get(["a", "nowhere"])


def test_removed_keys_are_gone_and_unknown_ones_ignored(store: ChromaCollection) -> None:
    store.add(["a", "b", "c"], units(3))
    store.remove(["b", "unknown", "b"])
    assert store.count() == 2
    assert store.find_missing(["a", "b", "c"]) == {"b"}
    assert {key for key, _ in store.find_nearest(units(1)[0], 9)} == {"a", "c"}


def test_the_nearest_come_best_first_with_their_cosine(store: ChromaCollection) -> None:
    rows = units(20)
    store.add([str(number) for number in range(20)], rows)
    found = store.find_nearest(rows[7], 5)
    exact = rows @ rows[7]
    assert [key for key, _ in found] == [str(number) for number in np.argsort(-exact)[:5]]
    np.testing.assert_allclose([score for _, score in found], np.sort(exact)[::-1][:5], atol=1e-5)


def test_rows_of_zeros_are_kept_and_near_to_nothing(store: ChromaCollection) -> None:
    store.add(["zero", "one"], np.stack([np.zeros(DIMENSIONS, np.float32), units(1)[0]]))
    np.testing.assert_array_equal(store.get(["zero"]), np.zeros((1, DIMENSIONS)))
    assert dict(store.find_nearest(units(1)[0], 2))["zero"] == pytest.approx(0, abs=1e-6)


def test_rows_of_the_wrong_length_are_refused(store: ChromaCollection) -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 8\)"):
        store.add(["a"], np.ones((1, 5), np.float32))
    assert store.count() == 0


def test_what_is_added_may_be_changed_by_the_caller_afterwards(store: ChromaCollection) -> None:
    rows = units(1)
    store.add(["a"], rows)
    kept = rows.copy()
    rows[:] = 0
    np.testing.assert_allclose(store.get(["a"]), kept, atol=1e-6)


def test_tens_of_thousands_of_keys_can_be_looked_up(store: ChromaCollection) -> None:
    store.add(["a"], units(1))
    keys = [f"unknown{number}" for number in range(50_000)]
    assert len(store.find_missing([*keys, "a"])) == 50_000


def test_threads_may_add_and_read_at_once(store: ChromaCollection) -> None:
    rows = units(8)

    def add_and_read(number: int) -> FloatArray:
        store.add([f"thread{number}"], rows[number : number + 1])
        return store.get([f"thread{number}"])

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(add_and_read, range(8)))
    np.testing.assert_allclose(np.concatenate(seen), rows, atol=1e-6)
    assert store.count() == 8


def test_the_index_is_written_less_often_the_larger_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the bytes written would grow with the square of what is stored."""
    monkeypatch.setitem(vectors._HNSW, "sync_threshold", 10)
    monkeypatch.setattr(vectors, "_FEW_UNWRITTEN", 10)
    rows, writes = units(2000), set()
    store = ChromaVectors(tmp_path, "vectors", DIMENSIONS)
    for start in range(0, 2000, 10):
        store.add([f"key{number}" for number in range(start, start + 10)], rows[start : start + 10])
        writes |= {file.stat().st_mtime_ns for file in tmp_path.glob("*/data_level0.bin")}
    store.settle()
    waiting = count_unwritten(tmp_path)
    store.close()

    assert len(writes) < 60  # instead of 200
    assert waiting <= 10
    again = ChromaVectors(tmp_path, "vectors", DIMENSIONS)
    assert again.count() == 2000
    np.testing.assert_allclose(again.get(["key7", "key1999"]), rows[[7, 1999]], atol=1e-6)
    assert [key for key, _ in again.find_nearest(rows[1234], 1)] == ["key1234"]
    again.close()


def count_unwritten(folder: Path) -> int:
    """Count the changes that anyone who opens a folder of Chroma has to make again."""
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as db:
        sql = "SELECT (SELECT max(seq_id) FROM embeddings_queue) - (SELECT min(seq_id) FROM max_seq_id)"
        return int(db.execute(sql).fetchone()[0])


Step = tuple[str, list[str], int]
steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.lists(st.sampled_from(KEYS), max_size=6), st.integers(0, 99)),
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
@pytest.mark.exhaustive
def test_a_store_holds_what_a_dictionary_holds_after_any_changes(tmp_path: Path, changes: list[Step]) -> None:
    chroma, memory = ChromaVectors(tmp_path, "any-changes", DIMENSIONS), dict[str, FloatArray]()
    chroma.remove(KEYS)
    for kind, keys, seed in changes:
        if kind == "add":
            chroma.add(keys, units(len(keys), seed))
            memory.update(zip(keys, units(len(keys), seed), strict=True))
        else:
            chroma.remove(keys)
            memory = {key: row for key, row in memory.items() if key not in keys}
    assert chroma.find_missing(KEYS) == {key for key in KEYS if key not in memory}
    for key, row in memory.items():
        np.testing.assert_allclose(chroma.get([key])[0], row, atol=1e-6)
    chroma.close()


# --- Chroma's folder


def test_what_was_stored_is_there_after_closing(tmp_path: Path) -> None:
    rows = units(300)
    keys = [str(number) for number in range(300)]
    first = ChromaVectors(tmp_path, "vectors", DIMENSIONS)
    first.add(keys, rows)
    first.close()
    first.close()
    second = ChromaVectors(tmp_path, "vectors", DIMENSIONS)
    np.testing.assert_allclose(second.get(keys), rows, atol=1e-6)
    second.close()


def test_collections_of_one_folder_are_apart(tmp_path: Path) -> None:
    one, other = (ChromaVectors(tmp_path, name, DIMENSIONS) for name in ("one-model", "other-model"))
    one.add(["a"], units(1))
    one.close()
    assert other.find_missing(["a"]) == {"a"}
    other.close()


def test_vectors_of_another_length_have_to_be_made_again(tmp_path: Path) -> None:
    store = ChromaVectors(tmp_path, "vectors", DIMENSIONS)
    store.add(["a"], units(1))
    store.close()
    with pytest.raises(DamagedVectors, match="not 5 numbers long"):
        ChromaVectors(tmp_path, "vectors", 5)


@pytest.fixture(scope="session")
def filled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with enough in it for an index file beside the database."""
    folder = tmp_path_factory.mktemp("filled")
    store = ChromaVectors(folder, "vectors", DIMENSIONS)
    store.add([str(number) for number in range(1500)], units(1500))
    store.close()
    return folder


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xa5" * path.stat().st_size)


def segment(folder: Path) -> Path:
    return next(path for path in folder.iterdir() if path.is_dir())


DAMAGES: dict[str, Callable[[Path], None]] = {
    "database cut in half": lambda folder: truncate(folder / "chroma.sqlite3"),
    "index folder missing": lambda folder: shutil.rmtree(segment(folder)),
    "index data cut": lambda folder: os.truncate(segment(folder) / "data_level0.bin", 100),
    "index data missing": lambda folder: (segment(folder) / "data_level0.bin").unlink(),
    "index keys missing": lambda folder: (segment(folder) / "index_metadata.pickle").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.exhaustive
def test_a_damaged_folder_is_noticed_and_can_be_filled_again(damage: str, filled_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(filled_folder, folder)
    DAMAGES[damage](folder)
    with pytest.raises(DamagedVectors, match="must be rebuilt"):
        ChromaVectors(folder, "vectors", DIMENSIONS)
    shutil.rmtree(folder)
    again = ChromaVectors(folder, "vectors", DIMENSIONS)
    again.add(["a"], units(1))
    assert (again.count(), again.find_missing(["a"])) == (1, set())
    again.close()


@pytest.mark.parametrize("damage", ["index folder missing", "index keys missing", "index data missing"])
@pytest.mark.exhaustive
def test_damage_is_noticed_after_a_crash_left_no_digests(damage: str, filled_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(filled_folder, folder)
    (folder / "checksums.json").unlink()
    DAMAGES[damage](folder)
    with pytest.raises(DamagedVectors, match="cannot be read"):
        ChromaVectors(folder, "vectors", DIMENSIONS)


def test_a_store_that_was_only_read_opens_again(filled_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(filled_folder, folder)
    for _ in range(2):
        store = ChromaVectors(folder, "vectors", DIMENSIONS)
        np.testing.assert_allclose(store.get(["1499"]), units(1500)[-1:], atol=1e-6)
        assert store.find_nearest(units(1500)[7], 1)[0][0] == "7"
        store.close()


def test_a_store_that_was_changed_and_never_closed_opens_again(filled_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(filled_folder, folder)
    store = ChromaVectors(folder, "vectors", DIMENSIONS)
    store.add([f"more{number}" for number in range(1500)], units(1500))
    shutil.copytree(folder, tmp_path / "left")  # as a killed process leaves it
    store.close()
    left = ChromaVectors(tmp_path / "left", "vectors", DIMENSIONS)
    assert left.count() == 3000
    left.close()


def test_a_folder_that_cannot_be_made_is_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageUnwritable, match="cannot be written"):
        ChromaVectors(tmp_path / "file" / "store", "vectors", DIMENSIONS)


@pytest.mark.needs("unprivileged")
def test_a_read_only_folder_is_unwritable(filled_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(filled_folder, folder)
    for path in (folder / "chroma.sqlite3", folder):
        path.chmod(0o500)
    with pytest.raises(StorageUnwritable, match="cannot be written"):
        ChromaVectors(folder, "vectors", DIMENSIONS)


@pytest.mark.exhaustive
def test_a_full_disk_is_unwritable_and_leaves_the_store_usable(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    store = ChromaVectors(tmp_path, "vectors", DIMENSIONS)
    store.add(["a"], units(1))
    largest = max(path.stat().st_size for path in tmp_path.rglob("*"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))  # no file may grow past this
    try:
        with pytest.raises(StorageUnwritable, match="make room"):
            store.add([f"more{number}" for number in range(2000)], units(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    store.add(["b"], units(1))
    assert store.find_missing(["a", "b"]) == set()
    store.close()


@pytest.mark.parametrize(("microseconds", "settled"), [(20, {512}), (500, {64, 128, 256}), (10_000, {32})])
def test_a_batch_is_as_large_as_may_be_waited_for(microseconds: int, settled: set[int]) -> None:
    batch = BatchSize(5_000)
    sizes = []
    for _ in range(20):
        batch.adjust_size(batch.size * microseconds / 1e6)
        sizes.append(batch.size)

    assert set(sizes[5:]) <= settled


def test_a_batch_is_no_larger_than_chroma_takes() -> None:
    batch = BatchSize(20)
    for seconds in (0.0, 0.0, 1.0, 1.0, 0.0):
        batch.adjust_size(seconds)
        assert batch.size == 20
