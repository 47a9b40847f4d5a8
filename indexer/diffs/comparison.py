"""Compares two commits within bounds: of size, of time, and of what is indexed at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from indexer.diffs.changed_files import FileDifferences, list_differences
from indexer.diffs.changed_places import read_places
from indexer.diffs.common_ground import find_common_ground
from indexer.git.repository import Repository
from indexer.types import ChangedFile, ChangedPlace, Comparison, DiffQuery, Tag

MOST_READ = 40  # files of which the lines are compared
MOST_NAMED = 2_000  # files
_MOST_CHANGED = 20_000  # lines of one file, beyond which it is no change that anybody reads


def compare_commits(repository: Repository, older: Tag, newer: Tag, query: DiffQuery) -> Comparison:
    """Compare two commits; of two that stand the other way round, the older one comes first all the same."""
    ground = find_common_ground(repository.git, older.sha, newer.sha)
    if query.until and ground.base == newer.sha != older.sha:
        older, newer = newer, older
        ground = find_common_ground(repository.git, older.sha, newer.sha)
    bare = Comparison(
        older=older,
        newer=newer,
        base=ground.base,
        ahead=ground.ahead,
        behind=ground.behind,
        is_shallow=bool(repository.history.read_shallow_commits()),
    )
    if older.sha == newer.sha:
        return bare
    found = list_differences(repository, bare.start, newer.sha, query.paths)
    return _fill(bare, repository, found, query)


def _fill(bare: Comparison, repository: Repository, found: FileDifferences, query: DiffQuery) -> Comparison:
    folded, files, read = found.folded.copy(), list[ChangedFile](), list[Sequence[ChangedPlace]]()
    for one in found.files:
        if len(read) < MOST_READ and query.limit:
            places = (
                "too large"
                if ((one.change.added or 0) + (one.change.removed or 0) > _MOST_CHANGED)
                else read_places(repository, one, query)
            )
            if isinstance(places, str):
                folded[places] += 1
                continue
            if query.lines is not None and not places:
                continue
            read.append(places)
            files.append(one.change if query.lines is None else _count_places(one.change, places))
        else:
            files.append(one.change)
    return Comparison(
        older=bare.older,
        newer=bare.newer,
        base=bare.base,
        ahead=bare.ahead,
        behind=bare.behind,
        files=tuple(files[:MOST_NAMED]),
        places=tuple(chain.from_iterable(read) if query.is_whole else _take_turns(read))[: query.limit],
        total=len(files),
        folded=tuple(folded.most_common()),
        is_complete=found.is_complete,
        is_shallow=bare.is_shallow,
    )


def _count_places(change: ChangedFile, places: Sequence[ChangedPlace]) -> ChangedFile:
    """Count the lines of some places of a file alone."""
    return replace(
        change,
        added=sum(place.added_count for place in places),
        removed=sum(place.removed_count for place in places),
    )


def _take_turns(read: Sequence[Sequence[ChangedPlace]]) -> Iterator[ChangedPlace]:
    """Put the largest place of each file first, then the second of each, so that no file hides the others."""
    size = lambda place: (place.trivial, -(place.added_count + place.removed_count))  # noqa: E731
    ranked = [sorted(places, key=size) for places in read]
    for turn in zip_longest(*ranked):
        yield from (place for place in turn if place is not None)
