"""Compares two commits within limits of size, time, and the index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from indexer.diffs.changed_files import FileDifference, FileDifferences, list_differences
from indexer.diffs.patch import PATCH_OPTIONS, Hunk, read_patch
from indexer.git.file_contents import read_masked_lines
from indexer.git.git_command import GitCommand
from indexer.git.repository import Repository
from indexer.types import ChangedFile, ChangedPlace, Comparison, DiffQuery, Tag

MAX_PLACES = 12  # of one file
MAX_LINES = 30  # of each side of a place
_LONGEST_LINE = 300
_TIMEOUT_SECONDS = 5.0
# `git diff` takes contents by their names, and `git diff-tree` does not.
_OPTIONS = (*PATCH_OPTIONS, "--text", "-O/dev/null")
_TO_CHECKERS = re.compile(
    r"(?:#|//)\s?(?:type: ?ignore|noqa|nosec|pragma:|pylint:|pyright:|fmt:|eslint-|@ts-|nolint|prettier-).*"
)


def read_places(repository: Repository, one: FileDifference, query: DiffQuery) -> Sequence[ChangedPlace] | str:
    """Read the changed places of a file, in order, or the reason for showing none."""
    old = read_masked_lines(repository, one.old) if one.old is not None else []
    new = read_masked_lines(repository, one.new) if one.new is not None else []
    if isinstance(old, str):
        return old
    if isinstance(new, str):
        return new
    hunks = [hunk for hunk in _list_hunks(repository.git, one, old, new) if hunk.touches(query.lines)]
    most = len(hunks) if query.is_whole else MAX_PLACES
    telling = sorted(hunks, key=lambda hunk: _is_trivial(hunk, old, new))[:most]
    shown = None if query.is_whole else MAX_LINES
    return [_make_place(one, hunk, old, new, shown) for hunk in sorted(telling, key=lambda hunk: hunk.new_line)]


def _list_hunks(git: GitCommand, one: FileDifference, old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    if one.old is None or one.new is None:
        return [Hunk(min(1, len(old)), len(old), min(1, len(new)), len(new))]
    if one.old.blob == one.new.blob:
        return []
    output = git.try_run("diff", *_OPTIONS, one.old.blob, one.new.blob, "--", seconds=_TIMEOUT_SECONDS)
    return list(chain.from_iterable(read_patch(output or b"").hunks.values()))


def _is_trivial(hunk: Hunk, old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether only white space or comments for a checker differ."""
    before, after = _take(old, hunk.old_line, hunk.old_count), _take(new, hunk.new_line, hunk.new_count)
    return _squeeze(before) == _squeeze(after)


def _squeeze(lines: Sequence[str]) -> str:
    return "".join("".join(_TO_CHECKERS.sub("", line) for line in lines).split())


def _make_place(
    one: FileDifference, hunk: Hunk, old: Sequence[str], new: Sequence[str], most: int | None
) -> ChangedPlace:
    path = one.change.path
    return ChangedPlace(
        path=path,
        former=one.change.former or path,
        old_line=hunk.old_line,
        new_line=hunk.new_line,
        removed_count=hunk.old_count,
        added_count=hunk.new_count,
        removed=_show(old, hunk.old_line, hunk.old_count, most),
        added=_show(new, hunk.new_line, hunk.new_count, most),
        trivial=_is_trivial(hunk, old, new),
    )


def _take(lines: Sequence[str], first: int, count: int) -> Sequence[str]:
    return lines[first - 1 : first - 1 + count] if count else ()


def _show(lines: Sequence[str], first: int, count: int, most: int | None) -> tuple[str, ...]:
    return tuple(line[:_LONGEST_LINE] for line in _take(lines, first, count)[:most])


_BASE_SECONDS = 10.0


def _find_common_ground(git: GitCommand, older: Tag, newer: Tag) -> Comparison:
    """Find where two commits diverged; the result is unknown without a common ancestor."""
    output = git.try_run("merge-base", older.sha, newer.sha, seconds=_BASE_SECONDS)
    base = (output or b"").split(b"\n")[0].decode("ascii", "replace").strip()
    counting = ("--left-right", "--count", f"{older.sha}...{newer.sha}", "--")
    numbers = (git.try_run("rev-list", *counting, seconds=_BASE_SECONDS) or b"").split() if base else []
    behind, ahead = map(int, numbers) if len(numbers) == 2 else (None, None)
    return Comparison(older=older, newer=newer, base=base, ahead=ahead, behind=behind)


MAX_READ = 40  # files of which the lines are compared
MAX_NAMED = 2_000  # files
_MAX_CHANGED = 20_000  # lines of one file, beyond which it is no change that anybody reads


def compare_commits(repository: Repository, older: Tag, newer: Tag, query: DiffQuery) -> Comparison:
    """Compare two commits; if they are reversed, the older one still comes first."""
    bare = _find_common_ground(repository.git, older, newer)
    if query.until and bare.base == newer.sha != older.sha:
        bare = _find_common_ground(repository.git, newer, older)
    bare = replace(bare, is_shallow=bool(repository.history.read_shallow_commits()))
    if older.sha == newer.sha:
        return bare
    found = list_differences(repository, bare.start, bare.newer.sha, query.paths)
    return _fill(bare, repository, found, query)


def _fill(bare: Comparison, repository: Repository, found: FileDifferences, query: DiffQuery) -> Comparison:
    folded, files, read = found.folded.copy(), list[ChangedFile](), list[Sequence[ChangedPlace]]()
    for one in found.files:
        if len(read) < MAX_READ and query.limit:
            places = (
                "too large"
                if ((one.change.added or 0) + (one.change.removed or 0) > _MAX_CHANGED)
                else read_places(repository, one, query)
            )
            if isinstance(places, str):
                folded[places] += 1
                continue
            if query.lines is not None and not places:
                continue
            read.append(places)
            if query.lines is None:
                files.append(one.change)
            else:  # of a file, only some places count
                added, removed = sum(each.added_count for each in places), sum(each.removed_count for each in places)
                files.append(replace(one.change, added=added, removed=removed))
        else:
            files.append(one.change)
    return replace(
        bare,
        files=tuple(files[:MAX_NAMED]),
        places=tuple(chain.from_iterable(read) if query.is_whole else _take_turns(read))[: query.limit],
        total=len(files),
        folded=tuple(folded.most_common()),
        is_complete=found.is_complete,
    )


def _take_turns(read: Sequence[Sequence[ChangedPlace]]) -> Iterator[ChangedPlace]:
    """Put the largest place of each file first, then the second of each, so that no file hides the others."""
    size = lambda place: (place.trivial, -(place.added_count + place.removed_count))  # noqa: E731
    ranked = [sorted(places, key=size) for places in read]
    for turn in zip_longest(*ranked):
        yield from (place for place in turn if place is not None)
