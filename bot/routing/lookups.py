"""Looks the clues of a question up in the indexes of repositories: exact lookups, side by side, within a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.ports import CodeSearch
from bot.ports import Repositories
from bot.routing.clues import RepositoryHint, is_defined, is_path_match
from bot.routing.weighing import Found
from indexer.errors import IndexerError

SECONDS = 1.5
AT_ONCE = 4

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class HintMatches:
    """Which clues each repository has; not `complete` where some could not be looked at in time."""

    found: Found
    complete: bool


class HintLookup:
    """Looks into what is indexed by now; nothing is indexed or fetched for it."""

    def __init__(self, repositories: Repositories, *, seconds: float = SECONDS) -> None:
        self._repositories = repositories
        self._seconds = seconds

    async def find(self, clues: Sequence[RepositoryHint], names: Sequence[str]) -> HintMatches:
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
        return HintMatches(found=found, complete=not late)

    async def _in(
        self, name: str, clues: Sequence[RepositoryHint], places: asyncio.Semaphore
    ) -> Collection[RepositoryHint]:
        async with places:
            try:
                code = await self._repositories.pin_existing(name)
                defined = [clue for clue in clues if clue.kind == "name" and await _is_in(clue, code)]
                return frozenset((*defined, *await _paths(clues, code)))
            except IndexerError as error:
                log.info("%s was not looked at: %s", name, error)
                return frozenset()


async def _is_in(clue: RepositoryHint, code: CodeSearch) -> bool:
    return is_defined(clue, await code.definitions(clue.text))


async def _paths(clues: Sequence[RepositoryHint], code: CodeSearch) -> Sequence[RepositoryHint]:
    wanted = [clue for clue in clues if clue.kind == "path"]
    if not wanted:
        return ()
    files = await code.files()
    return await asyncio.to_thread(
        lambda: [clue for clue in wanted if any(is_path_match(clue.text, entry.path) for entry in files)]
    )
