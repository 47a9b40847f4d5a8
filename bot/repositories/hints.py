"""Guesses the repository of a question from its files, definitions and errors."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent import (
    CodeSearch,
    SourceFiles,
    find_content_terms,
    find_mentions,
    match_terms,
    normalize_name,
    parse_error_name,
    parse_frames,
)
from bot.ports import Repositories
from indexer import Definition, IndexerError

MAX_HINTS = 12
_MAX_FRAMES = 4
_WORD_HITS = 3  # of each repository, whose words are counted
_TICKED = re.compile(r"`([^`\n]{3,200})`")

SECONDS = 1.5
AT_ONCE = 4

log = logging.getLogger(__name__)

CLEARLY = 2  # times as much must speak for one repository as for another, what both have left aside


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryHint:
    """A file or a name that may be in a repository; `weight` says how much it proves.

    An `exact` name must match in case: a capitalised word of the question is seldom a class.
    """

    kind: Literal["path", "name", "hint", "word"]
    text: str
    weight: int
    exact: bool = False


Found = Mapping[str, Collection[RepositoryHint]]
LookUp = Callable[[CodeSearch], Awaitable[Collection[RepositoryHint]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class HintMatches:
    """The hints that each repository has; not `complete` if some could not be checked in time."""

    found: Found
    complete: bool


def find_hints(question: str) -> tuple[RepositoryHint, ...]:
    """Find the hints in a question, the strongest first."""
    found = sorted((*_find_in_traces(question), *_find_in_words(question)), key=lambda hint: -hint.weight)
    first = {(hint.kind, hint.text): hint for hint in reversed(found)}
    return tuple(sorted(first.values(), key=lambda hint: -hint.weight))[:MAX_HINTS]


def find_name_hint(repository: str) -> RepositoryHint:
    """Make a hint of a repository's name, if a question has it as an ordinary word."""
    return RepositoryHint(kind="hint", text=repository, weight=2)


def is_path_match(written: str, path: str) -> bool:
    """Whether a path in a message or stack trace may be that of an indexed file."""
    wanted, indexed = written.strip("/").split("/"), path.split("/")
    wanted = [part for part in wanted if part not in {"", "."}]
    shared = 0
    for one, other in zip(reversed(wanted), reversed(indexed), strict=False):
        if one != other:
            break
        shared += 1
    return shared > 0 and shared >= min(len(wanted), len(indexed), 2)


def is_defined(hint: RepositoryHint, definitions: Sequence[Definition]) -> bool:
    """Whether the definitions of a name are what the hint means."""
    plain = hint.text.rpartition(".")[2]
    return any(not hint.exact or each.symbol.name == plain for each in definitions)


def _find_in_traces(question: str) -> Iterator[RepositoryHint]:
    for frame in parse_frames(question)[-_MAX_FRAMES:]:
        yield _make_path_hint(frame.path)
        if frame.function and not frame.function.startswith("<"):
            yield _make_name_hint(frame.function)
    error = parse_error_name(question)
    if error:
        yield _make_name_hint(error.rpartition(".")[2])


def _find_in_words(question: str) -> Iterator[RepositoryHint]:
    mentions = find_mentions(question)
    yield from (_make_path_hint(each.path) for each in mentions.paths)
    yield from map(_make_name_hint, mentions.names)
    yield from (RepositoryHint(kind="name", text=word, weight=1, exact=True) for word in mentions.words)
    yield from (_make_path_hint(each) for each in _TICKED.findall(question) if "/" in each and " " not in each)


def _make_path_hint(written: str) -> RepositoryHint:
    path = written.replace("\\", "/").partition(":")[0] if "/" in written else written
    return RepositoryHint(kind="path", text=path, weight=4 if "/" in path.strip("/") else 2)


def _make_name_hint(written: str) -> RepositoryHint:
    name = normalize_name(written)
    if "." in name:
        return RepositoryHint(kind="name", text=name, weight=4)
    is_plain = name.isalpha() and name == name.lower()
    return RepositoryHint(kind="name", text=name, weight=1 if is_plain else 3)


class HintLookup:
    """Searches the existing indexes; nothing is indexed or fetched for it."""

    def __init__(self, repositories: Repositories, *, seconds: float = SECONDS) -> None:
        self._repositories = repositories
        self._seconds = seconds

    async def find(self, hints: Sequence[RepositoryHint], names: Sequence[str]) -> HintMatches:
        """Look up all hints in all repositories, at least one; unreadable ones have none."""

        async def look_up(code: CodeSearch) -> Collection[RepositoryHint]:
            wanted = [hint for hint in hints if hint.kind == "name"]
            defined = [hint for hint in wanted if is_defined(hint, await code.definitions(hint.text))]
            return frozenset((*defined, *await _find_paths(hints, code)))

        return await self._look_into_all(names, look_up)

    async def find_words(self, question: str, names: Sequence[str]) -> HintMatches:
        """Search each repository for the words of a question, and return the words in its best places."""
        terms = find_content_terms(question)

        async def look_up(code: CodeSearch) -> Collection[RepositoryHint]:
            hits = await code.search(question, limit=_WORD_HITS, mode="lexical") if terms else ()
            matches = [match_terms(f"{hit.location.path} {hit.text}", terms) for hit in hits]
            best = max(matches, key=len, default=frozenset[str]())
            return frozenset(RepositoryHint(kind="word", text=term, weight=1) for term in best)

        return await self._look_into_all(names, look_up)

    async def _look_into_all(self, names: Sequence[str], look_up: LookUp) -> HintMatches:
        places = asyncio.Semaphore(AT_ONCE)
        tasks = {name: asyncio.create_task(self._look_into(name, look_up, places)) for name in names}
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

    async def _look_into(self, name: str, look_up: LookUp, places: asyncio.Semaphore) -> Collection[RepositoryHint]:
        async with places:
            try:
                return await look_up(await self._repositories.pin_existing(name))
            except IndexerError as error:
                log.info("%s was not looked at: %s", name, error)
                return frozenset()


async def _find_paths(hints: Sequence[RepositoryHint], code: SourceFiles) -> Sequence[RepositoryHint]:
    wanted = [hint for hint in hints if hint.kind == "path"]
    if not wanted:
        return ()
    files = await code.files()
    return await asyncio.to_thread(
        lambda: [hint for hint in wanted if any(is_path_match(hint.text, entry.path) for entry in files)]
    )


def pick_winner(found: Found) -> str | None:
    """Return the one repository that the hints clearly favour."""

    def is_better(name: str, other: str) -> bool:
        mine, theirs = set(found[name]) - set(found[other]), set(found[other]) - set(found[name])
        weight = sum(hint.weight for hint in mine)
        return weight > 0 and weight >= CLEARLY * sum(hint.weight for hint in theirs)

    winners = [name for name in found if all(is_better(name, other) for other in found if other != name)]
    return winners[0] if len(winners) == 1 and found[winners[0]] else None


def sort_by_likelihood(found: Found, order: Sequence[str]) -> tuple[str, ...]:
    """Sort repositories by likelihood; equal ones in the given order."""
    rarity = {hint: sum(hint in each for each in found.values()) for each in found.values() for hint in each}
    weights = {name: sum(hint.weight / rarity[hint] for hint in found.get(name, ())) for name in order}
    return tuple(sorted(order, key=lambda name: -weights[name]))
