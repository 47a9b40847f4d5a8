"""Lookups in repositories of very many files: nobody else waits while they are listed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from bot.surfaces.code_lookups import CodeLookups
from indexer import FileEntry
from tests.bot.surfaces.cores import PEOPLE, Library, NamedCode, look_up

THREADS: list[str] = []


class WatchedPath(str):
    """A path that notes in which thread it is looked at."""

    def startswith(self, *prefix: Any) -> bool:
        THREADS.append(threading.current_thread().name)
        return super().startswith(*prefix)


class WatchedCode(NamedCode):
    """Files that note in which thread they are looked at."""

    async def files(self) -> Sequence[FileEntry]:
        known = await super().files()
        return [
            FileEntry(path=WatchedPath(one.path), language=one.language, source_type=one.source_type, lines=one.lines)
            for one in known
        ]


@pytest.mark.parametrize("pattern", ["", "**/*.py"])
async def test_files_are_listed_beside_the_event_loop(pattern: str) -> None:
    library = Library("shop")
    library._code["shop"] = WatchedCode("shop")
    THREADS.clear()

    found = await look_up(CodeLookups(library=library), PEOPLE["ann"], "list_files", folder="shop", glob=pattern)

    assert found.total > 2
    assert THREADS
    assert threading.main_thread().name not in THREADS
