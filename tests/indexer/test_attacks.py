"""Files that are written to keep a parser busy: they cost their own parse, and nobody else anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from indexer.index import CodeIndex
from indexer.parser_pool.pool import ParserPool
from indexer.parser_pool.process import Limits
from indexer.types import PlainFile, RefreshReport
from tests.fakes.repositories import GitRepo

pytestmark = pytest.mark.exhaustive

SUFFIXES = ("c", "cs", "py", "js", "kt", "lua", "java", "go")
FORMS = {
    "brackets": "(\n" * 50_500,
    "rows of brackets": ("(" * 79 + "\n") * 1_250,
    "brackets in a body": "void f() {\nint a = {(\n" + "{(\n" * 33_000,
    "nested lists": "x = " + ("[" * 99 + "\n") * 1_000,
}
LIMITS = Limits(tree=0.3, cpu=0.6)


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    pool = ParserPool(processes=1, limits=LIMITS)
    yield pool
    pool.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.exhaustive
async def test_questions_are_answered_while_hostile_files_are_parsed(
    tmp_path: Path, pool: ParserPool, form: str
) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("orders.py", "def place_order():\n    return 1\n")
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", parser_pool=pool)
    try:
        await index.refresh()
        for suffix in SUFFIXES:
            repository.write(f"hostile/a.{suffix}", FORMS[form])
        repository.write("stock.py", "def count_stock():\n    return 2\n")
        repository.commit()

        refreshing = asyncio.create_task(index.refresh())
        answered = await count_questions(index, refreshing)

        assert (await refreshing).files == len(SUFFIXES) + 2
        assert (await (await index.pin()).search("count stock"))[0].location.path == "stock.py"
        assert answered > 0
    finally:
        await index.aclose()


async def count_questions(index: CodeIndex, refreshing: asyncio.Task[RefreshReport]) -> int:
    """Ask until the refresh is over, and count the questions that were answered before."""
    answered = 0
    while not refreshing.done():
        hits = await (await index.pin()).search("place order")
        assert "orders.py" in {hit.location.path for hit in hits}
        answered += not refreshing.done()
    return answered


async def test_a_hostile_file_is_named_and_never_parsed_again(tmp_path: Path, pool: ParserPool) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("hostile.c", ";(\n" * 250_000)
    repository.write("orders.py", "def place_order():\n    return 1\n")
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", parser_pool=pool)
    try:
        await index.refresh()
        assert (await index.status()).plain_files == (PlainFile(path="hostile.c", reason="time"),)

        process = parser()
        spent = sum(process.cpu_times()[:2])
        await index.refresh(full=True)

        assert parser() == process  # the same one: nothing had to be ended
        assert sum(process.cpu_times()[:2]) - spent < LIMITS.cpu
        assert (await index.status()).plain_files == (PlainFile(path="hostile.c", reason="time"),)
    finally:
        await index.aclose()


async def test_a_file_that_is_no_trouble_any_more_is_not_named(tmp_path: Path, pool: ParserPool) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("hostile.c", ";(\n" * 250_000)
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home", parser_pool=pool)
    try:
        await index.refresh()
        assert (await index.status()).plain_files
        repository.write("hostile.c", "int f() { return 1; }\n")
        repository.commit()
        await index.refresh()
        status = await index.status()
        assert (status.plain_files, status.symbols) == ((), 1)
    finally:
        await index.aclose()


def parser() -> psutil.Process:
    (found,) = (child for child in psutil.Process().children() if "indexer.parser_pool.worker" in child.cmdline())
    return found
