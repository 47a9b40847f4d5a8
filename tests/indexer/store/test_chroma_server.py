"""An index on a Chroma server that is shared, unreachable, emptied, or no Chroma server at all."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from chromadb.errors import InternalError

from bot.cli.doctor import check_vector_server
from bot.errors import SettingsError
from bot.settings import Settings
from indexer.embedding.factory import open_embedder
from indexer.errors import DamagedVectors, StorageError, StorageUnwritable, VectorsUnavailable
from indexer.index import CodeIndex
from indexer.store import chroma_client
from indexer.store.chroma_server import ServerVectors, check_chroma_server, map_server_errors, remove_collections
from indexer.store.data_folder import DataFolder, list_index_folders
from indexer.store.vector_place import VectorPlace, remove_index
from tests.fakes.chroma_server import running_chroma
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.loopback.web_service import Reply, Request, serving
from tests.fakes.repositories import GitRepo

pytestmark = pytest.mark.exhaustive

ROW = np.eye(1, 256, dtype=np.float32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_chroma(tmp_path_factory.mktemp("chroma-server")) as url:
        yield url


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "shop")
    repo.write("cart.py", "def add_item(cart, item):\n    cart.append(item)\n")
    repo.commit("first")
    return repo


@contextmanager
def answering(body: bytes, status: int = 200, *, held: bool = False) -> Iterator[str]:
    """A web server that is no Chroma, and says the same to everything; if `held`, to its version alone."""
    ended = Event()

    def answer(request: Request) -> Reply:
        if held and not request.path.endswith("/version"):
            ended.wait()
        return Reply(body=body, status=status)

    with serving(answer) as url:
        try:
            yield url
        finally:
            ended.set()


def count_vectors(server: str, home: Path) -> int:
    (folder,) = (home / "repositories").glob("shop-*")
    store = VectorPlace(DataFolder(folder), server).open(open_embedder("static"))
    try:
        return store.count()
    finally:
        store.close()


def find_databases(folder: Path) -> list[Path]:
    return list(folder.rglob("chroma.sqlite3"))


async def refresh(repository: GitRepo, home: Path, server: str) -> tuple[str, ...]:
    """Index, and return the warnings."""
    index = await CodeIndex.open(repository.root, home=home, chroma_url=server)
    try:
        await index.refresh()
        return (await index.status()).warnings
    finally:
        await index.aclose()


async def test_vectors_of_an_index_are_in_the_server_alone(server: str, repository: GitRepo, tmp_path: Path) -> None:
    await refresh(repository, tmp_path / "home", server)

    assert count_vectors(server, tmp_path / "home") > 0
    assert find_databases(tmp_path) == []


async def test_data_folders_share_a_server_but_no_collection(server: str, repository: GitRepo, tmp_path: Path) -> None:
    for home in ("one", "two"):
        await refresh(repository, tmp_path / home, server)
    (folder,) = list_index_folders(tmp_path / "one")
    remove_index(tmp_path / "one", folder.name, server)

    assert list_index_folders(tmp_path / "one") == []
    assert count_vectors(server, tmp_path / "two") > 0


def test_only_collections_of_the_prefix_are_removed(server: str) -> None:
    names = [f"{kind}-{uuid.uuid4().hex}" for kind in ("mine", "yours")]
    for name in names:
        store = ServerVectors(server, name, 256)
        store.add(["a"], ROW)
        store.close()
    remove_collections(server, names[0])
    counts = []
    for name in names:
        store = ServerVectors(server, name, 256)
        counts.append(store.count())
        store.close()

    assert counts == [0, 1]


@pytest.mark.exhaustive
async def test_a_server_that_lost_everything_is_filled_again(server: str, repository: GitRepo, tmp_path: Path) -> None:
    await refresh(repository, tmp_path / "home", server)
    before = count_vectors(server, tmp_path / "home")
    remove_collections(server, "citebot-shop-")
    repository.commit("nothing new")
    await refresh(repository, tmp_path / "home", server)

    assert count_vectors(server, tmp_path / "home") == before


@pytest.mark.exhaustive
async def test_vectors_of_another_length_are_replaced_and_said_so(
    server: str, repository: GitRepo, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    await refresh(repository, home, server)
    before = count_vectors(server, home)
    (folder,) = (home / "repositories").glob("shop-*")
    place = VectorPlace(DataFolder(folder), server)
    store = place.open(open_embedder("static"))
    assert isinstance(store, ServerVectors)
    name = store._name
    store.close()
    place.clear()
    short = ServerVectors(server, name, 3)
    short.add(["a"], np.eye(1, 3, dtype=np.float32))
    short.close()
    repository.commit("nothing new")

    assert any("rebuilt" in warning for warning in await refresh(repository, home, server))
    assert count_vectors(server, home) == before


def test_a_collection_that_is_deleted_meanwhile_has_to_be_made_again(server: str) -> None:
    name = f"gone-{uuid.uuid4().hex}"
    store = ServerVectors(server, name, 256)
    remove_collections(server, name)
    with pytest.raises(DamagedVectors, match="must be rebuilt"):
        store.add(["a"], ROW)
    store.close()
    store.close()


@pytest.mark.exhaustive
def test_a_server_that_stops_is_unavailable_and_usable_when_it_is_back(tmp_path: Path) -> None:
    port = find_free_port()
    with running_chroma(tmp_path, port) as url:
        store = ServerVectors(url, "vectors", 256)
        store.add(["a"], ROW)
    with pytest.raises(VectorsUnavailable, match="Check that it runs"):
        store.count()
    with pytest.raises(VectorsUnavailable, match="Check that it runs"):
        ServerVectors(url, "vectors", 256)
    with running_chroma(tmp_path, port):
        assert store.find_missing(["a", "b"]) == {"b"}
        store.close()


@pytest.mark.exhaustive
async def test_a_question_is_answered_while_the_server_is_away(
    repository: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.generations.reader.EXACT_UP_TO", 0)
    with running_chroma(tmp_path / "served") as url:
        await refresh(repository, tmp_path / "home", url)
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", chroma_url=url)
    try:
        (hit,) = await (await index.pin()).search("add an item", mode="vector")
    finally:
        await index.aclose()

    assert hit.location.path == "cart.py"


ALIENS: dict[str, tuple[bytes, int, str]] = {
    "a page": (b"<html>", 200, "is not a Chroma server"),
    "not found": (b"{}", 404, r"status 404\) is not a Chroma server"),
    "other JSON": (b'{"version": 1}', 200, "is not a Chroma server"),
    "another version": (b'"0.6.3"', 200, r"has version '0.6.3'. Run one of version 1"),
}


@pytest.mark.parametrize("alien", ALIENS)
def test_what_is_no_such_server_is_said(alien: str) -> None:
    body, status, says = ALIENS[alien]
    with answering(body, status) as url, pytest.raises(VectorsUnavailable, match=says):
        check_chroma_server(url)


def test_a_server_that_only_claims_to_be_one_is_unavailable() -> None:
    with answering(b'"1.0.0"') as url, pytest.raises(VectorsUnavailable, match="cannot be used"):
        ServerVectors(url, "vectors", 256)


READER = "Error executing plan: Error sending backfill request to compactor: Error creating hnsw segment reader: "
FAULTS: dict[str, type[StorageError]] = {
    f"{READER}Error loading hnsw index": DamagedVectors,
    f"{READER}Error deserializing pickle file: eval error at offset 7": DamagedVectors,
    "Error executing plan: Internal error: Error getting embedding": DamagedVectors,
    "error returned from database: (code: 11) database disk image is malformed": DamagedVectors,
    "error returned from database: (code: 5) database is locked": VectorsUnavailable,
    "error returned from database: (code: 13) database or disk is full": StorageUnwritable,
    "pool timed out while waiting for an open connection": VectorsUnavailable,
    "Too many open files (os error 24)": VectorsUnavailable,
    "": VectorsUnavailable,
}


@pytest.mark.parametrize("text", FAULTS)
def test_vectors_are_made_again_only_where_the_server_says_that_it_cannot_read_them(text: str) -> None:
    with pytest.raises(FAULTS[text]), map_server_errors("http://127.0.0.1:8000"):
        raise InternalError(text)


def test_a_server_that_tells_its_version_and_nothing_more_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chroma_client, "_ANSWER_SECONDS", 0.5)
    with answering(b'"1.0.0"', held=True) as url, pytest.raises(VectorsUnavailable, match="cannot be used"):
        ServerVectors(url, "vectors", 256)


async def test_the_doctor_looks_at_the_server(server: str) -> None:
    (well,) = await check_vector_server(server)
    (away,) = await check_vector_server(f"http://127.0.0.1:{find_free_port()}")

    assert (well.level, away.level) == ("ok", "problem")
    assert "cannot be used" in away.what
    assert await check_vector_server(None) == []


@pytest.mark.parametrize("url", ["chroma:8000", "ftp://chroma", "http://", "http://me:secret@chroma:8000"])
def test_an_address_that_is_none_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError, match="CHROMA_URL: This is not the address of a Chroma server") as refused:
        Settings.load({"CHROMA_URL": url})

    assert "secret" not in str(refused.value)
