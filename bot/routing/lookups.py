"""Looks the clues of a question up in the indexes of repositories: exact lookups, side by side, within a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.ports import CodeSearch
from bot.ports import Repositories
from bot.routing.clues import Clue, fits, is_defined
from bot.routing.weighing import Found
from indexer.errors import IndexerError

SECONDS = 1.5
AT_ONCE = 4

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """Which clues each repository has; not `complete` where some could not be looked at in time."""

    found: Found
    complete: bool


class Lookups:
    """Looks into what is indexed by now; nothing is indexed or fetched for it."""

    def __init__(self, repositories: Repositories, *, seconds: float = SECONDS) -> None:
        self._repositories = repositories
        self._seconds = seconds

    async def find(self, clues: Sequence[Clue], names: Sequence[str]) -> Findings:
        """Look all clues up in all repositories, of which there is one at least; one that cannot be read has none."""
        places = asyncio.Semaphore(AT_ONCE)
        tasks = {name: asyncio.create_task(self._in(name, clues, places)) for name in names}
        try:
            done, late = await asyncio.wait(tasks.values(), timeout=self._seconds)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.wait(tasks.values())
        if late:
            log.info("%d of %d repositories were not looked at in time", len(late), len(tasks))
        found = {name: task.result() if task in done else () for name, task in tasks.items()}
        return Findings(found=found, complete=not late)

    async def _in(self, name: str, clues: Sequence[Clue], places: asyncio.Semaphore) -> Collection[Clue]:
        async with places:
            try:
                code = await self._repositories.peek(name)
                defined = [clue for clue in clues if clue.kind == "name" and await _is_in(clue, code)]
                return frozenset((*defined, *await _paths(clues, code)))
            except IndexerError as error:
                log.info("%s was not looked at: %s", name, error)
                return frozenset()


async def _is_in(clue: Clue, code: CodeSearch) -> bool:
    return is_defined(clue, await code.definitions(clue.text))


async def _paths(clues: Sequence[Clue], code: CodeSearch) -> Sequence[Clue]:
    wanted = [clue for clue in clues if clue.kind == "path"]
    if not wanted:
        return ()
    files = await code.files()
    return await asyncio.to_thread(
        lambda: [clue for clue in wanted if any(fits(clue.text, entry.path) for entry in files)]
    )
