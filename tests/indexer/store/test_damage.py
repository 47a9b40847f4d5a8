"""Files of the data folder that are damaged: the index is built again on its own, and nothing wrong is ever read."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.errors import IndexDamaged, StorageError
from indexer.index import CodeIndex
from indexer.parser_pool.plain_files import FILE, PlainFiles
from indexer.store.data_folder import DataFolder
from tests.fakes.repositories import GitRepo

QUERIES = ("who sends an event again?", "Policy", "retry attempts")


@asynccontextmanager
async def opened(repo: GitRepo, home: Path) -> AsyncIterator[CodeIndex]:
    index = await CodeIndex.open(repo.root, home=home)
    try:
        yield index
    finally:
        await index.aclose()


async def read_all(index: CodeIndex) -> Sequence[object]:
    """Everything that can be asked of an index."""
    reader = await index.pin()
    hits = [[(hit.location, round(hit.score, 6)) for hit in await reader.search(query)] for query in QUERIES]
    texts = [(await reader.read(entry.path)).text for entry in await reader.files()]
    definitions = [await reader.definitions(f"Policy{number or ''}") for number in range(12)]
    return [*hits, texts, definitions, await reader.callers("send")]


async def ask(repo: GitRepo, home: Path) -> Sequence[object]:
    """Open an index as a command does, bring it to HEAD, and read all of it."""
    async with opened(repo, home) as index:
        if not await index.is_current():
            await index.refresh()
        return await read_all(index)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitRepo, Path]:
    """A repository, and a data folder with its index."""
    folder = tmp_path_factory.mktemp("damage")
    repo = GitRepo(folder / "shop")
    for number in range(12):
        repo.write(
            f"events/part_{number}.py",
            f'class Policy{number or ""}:\n    """Decides about event {number}."""\n\n'
            f"    def retry(self) -> int:\n        return send({number})\n\n\ndef send(n: int) -> int:\n    return n\n",
        )
    repo.commit()
    return repo, folder / "home"


async def copy_indexed(indexed: tuple[GitRepo, Path], target: Path) -> Path:
    repo, home = indexed
    if not home.exists():
        await ask(repo, home)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(home, target)
    (folder,) = (target / "repositories").iterdir()
    return folder


@st.composite
def damages(draw: st.DrawFn) -> tuple[int, int, bytes | None]:
    """Which file, where in it by thousandths, and what is written there; None cuts the file off."""
    return draw(st.integers(0, 50)), draw(st.integers(0, 999)), draw(st.none() | st.binary(min_size=1, max_size=64))


def damage_file(path: Path, place: int, patch: bytes | None) -> None:
    data = bytearray(path.read_bytes())
    at = place * len(data) // 1_000
    if patch is None:
        del data[at:]
    else:
        data[at : at + len(patch)] = patch
    path.write_bytes(data)


@given(damage=st.lists(damages(), min_size=1, max_size=3))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.exhaustive
async def test_whatever_is_damaged_the_answers_are_right(
    damage: list[tuple[int, int, bytes | None]], indexed: tuple[GitRepo, Path], tmp_path: Path
) -> None:
    repo, home = indexed
    folder = await copy_indexed(indexed, tmp_path / "home")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    for which, place, patch in damage:
        damage_file(files[which % len(files)], place, patch)

    assert await ask(repo, tmp_path / "home") == await ask(repo, home)
    async with opened(repo, tmp_path / "home") as index:
        await index.refresh(full=True)  # which asks the vectors for what they have
        assert await read_all(index) == await ask(repo, home)


async def test_a_refresh_of_nothing_loads_no_arrays_but_notices_each_that_is_lost_or_damaged(
    indexed: tuple[GitRepo, Path], tmp_path: Path
) -> None:
    repo, home = indexed
    folder = await copy_indexed(indexed, tmp_path / "home")
    code = (
        "import asyncio, sys; from pathlib import Path; from indexer import CodeIndex\n"
        "async def main():\n"
        "    index = await CodeIndex.open(Path(sys.argv[1]), home=Path(sys.argv[2]))\n"
        "    print((await index.refresh()).files, 'numpy' in sys.modules)\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", code, str(repo.root), str(tmp_path / "home")]
    ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert ended.stdout == "12 False\n"

    for place in sorted((folder / "generations").glob("*/*.npy")):
        for is_lost in (False, True):
            copied = await copy_indexed(indexed, tmp_path / "home") / place.relative_to(folder)
            copied.unlink() if is_lost else damage_file(copied, 500, b"damaged")
            async with opened(repo, tmp_path / "home") as index:
                await index.refresh()
                assert await read_all(index) == await ask(repo, home)


async def test_damage_that_is_met_while_reading_is_mended_by_the_next_refresh(
    indexed: tuple[GitRepo, Path], tmp_path: Path
) -> None:
    repo, home = indexed
    folder = await copy_indexed(indexed, tmp_path / "home")
    async with opened(repo, tmp_path / "home") as index:
        reader = await index.pin()
        data = bytearray(DataFolder(folder).catalog.read_bytes())
        data[4096:] = b"\xa5" * (len(data) - 4096)
        DataFolder(folder).catalog.write_bytes(data)
        with pytest.raises(StorageError, match="is damaged"):
            await reader.read("events/part_1.py")
        with pytest.raises(IndexDamaged, match="was damaged, and is being rebuilt"):
            await index.pin()
        assert not await index.is_current()
        assert "was damaged, and is being rebuilt" in (await index.status()).warnings[-1]

        await index.refresh()

        assert await read_all(index) == await ask(repo, home)
        assert (await index.status()).warnings == ("The index was damaged and is being rebuilt.",)


async def test_an_index_that_another_process_began_anew_is_read_from_then_on(
    indexed: tuple[GitRepo, Path], tmp_path: Path
) -> None:
    repo, home = indexed
    folder = await copy_indexed(indexed, tmp_path / "home")
    async with opened(repo, tmp_path / "home") as index:
        reader = await index.pin()
        before = await reader.read("events/part_1.py")
        DataFolder(folder).remove_index()
        async with opened(repo, tmp_path / "home") as other:
            await other.refresh()

        assert await reader.read("events/part_1.py") == before  # who holds the earlier one continues it
        assert await read_all(index) == await ask(repo, home)
        await index.refresh()
        assert await index.is_current()


async def test_a_catalog_that_is_written_to_meanwhile_is_no_damage(
    indexed: tuple[GitRepo, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    repo, _ = indexed
    await copy_indexed(indexed, tmp_path / "home")
    async with opened(repo, tmp_path / "home") as index:
        await index.refresh(full=True)
        async with opened(repo, tmp_path / "home") as other:
            assert await other.is_current()
        await index.refresh(full=True)
    async with opened(repo, tmp_path / "home") as index:
        assert await index.is_current()
    assert caplog.messages == []


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\xa5" * 8000])
def test_what_is_known_of_files_that_no_parser_could_take_is_found_out_again(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known = PlainFiles(tmp_path)
    known.note("blob", "python 1", "time")
    assert known.load() == {"blob": {"python 1": "time"}}
    (tmp_path / FILE).write_bytes(content)

    assert PlainFiles(tmp_path).load() == {}

    known.note("blob", "python 1", "time")
    assert known.load() == {"blob": {"python 1": "time"}}
    assert "was damaged" in caplog.text
