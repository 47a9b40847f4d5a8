"""The lines that differ in files, of which both sides are masked as wholes: no part of a secret is left to show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indexer.diffs.changed_files import FileDifference
from indexer.diffs.masked_file import read_masked_lines
from indexer.git.git_command import GitCommand
from indexer.git.objects import TreeEntry
from indexer.git.repository import Repository
from indexer.types import ChangedPlace, DiffQuery

MOST_PLACES = 12  # of one file
MOST_LINES = 30  # of each side of a place
_LONGEST_LINE = 300
_SECONDS = 5.0
# Git reads a person's settings for `diff`, unlike for `diff-tree`, which takes no contents by their names.
_OPTIONS = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", "--inter-hunk-context=0", "--text", "-O/dev/null",
    "--diff-algorithm=histogram",
)  # fmt: skip
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Hunk:
    """Where lines were replaced; of a side without any, the line before."""

    old_line: int
    old_count: int
    new_line: int
    new_count: int

    def touches(self, lines: tuple[int, int] | None) -> bool:
        """Whether some lines of the newer side are among those that were replaced, or around those that are gone."""
        if lines is None:
            return True
        last = self.new_line + max(self.new_count - 1, 0)
        return self.new_line <= lines[1] and (last >= lines[0] if self.new_count else last >= lines[0] - 1)


_TO_CHECKERS = re.compile(
    r"(?:#|//)\s?(?:type: ?ignore|noqa|nosec|pragma:|pylint:|pyright:|fmt:|eslint-|@ts-|nolint|prettier-).*"
)


def read_places(repository: Repository, one: FileDifference, query: DiffQuery) -> Sequence[ChangedPlace] | str:
    """Read the changed places of a file, in order, or the reason for showing none."""
    old, new = _read_side(repository, one.old), _read_side(repository, one.new)
    for side in (old, new):
        if isinstance(side, str):
            return side
    if isinstance(old, str) or isinstance(new, str):  # for the type checker, which does not follow the loop
        return "not indexed"
    hunks = [hunk for hunk in _list_hunks(repository.git, one, old, new) if hunk.touches(query.lines)]
    most = len(hunks) if query.is_whole else MOST_PLACES
    telling = sorted(hunks, key=lambda hunk: _is_trivial(hunk, old, new))[:most]
    shown = None if query.is_whole else MOST_LINES
    return [_make_place(one, hunk, old, new, shown) for hunk in sorted(telling, key=lambda hunk: hunk.new_line)]


def _read_side(repository: Repository, entry: TreeEntry | None) -> list[str] | str:
    """Return the masked lines of a side, none if there is no file; or why it is not indexed."""
    return [] if entry is None else read_masked_lines(repository, entry)


def _list_hunks(git: GitCommand, one: FileDifference, old: Sequence[str], new: Sequence[str]) -> list[_Hunk]:
    if one.old is None or one.new is None:
        return [_Hunk(old_line=min(1, len(old)), old_count=len(old), new_line=min(1, len(new)), new_count=len(new))]
    if one.old.blob == one.new.blob:
        return []
    output = git.try_run("diff", *_OPTIONS, one.old.blob, one.new.blob, "--", seconds=_SECONDS)
    return list(_read_hunks(output or b""))


def _read_hunks(output: bytes) -> Iterator[_Hunk]:
    """Read the headings of a diff; the lines below each are skipped by their count, whatever they look like."""
    left = 0
    for line in output.split(b"\n"):
        if left > 0 and line[:1] in {b"+", b"-"}:
            left -= 1
            continue
        found = _HUNK.match(line)
        if found is not None:
            old_count, new_count = int(found[2] or b"1"), int(found[4] or b"1")
            left = old_count + new_count
            yield _Hunk(old_line=int(found[1]), old_count=old_count, new_line=int(found[3]), new_count=new_count)


def _is_trivial(hunk: _Hunk, old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether nothing differs but white space, or comments that are addressed to a checker."""
    before, after = _take(old, hunk.old_line, hunk.old_count), _take(new, hunk.new_line, hunk.new_count)
    return _squeeze(before) == _squeeze(after)


def _squeeze(lines: Sequence[str]) -> str:
    return "".join("".join(_TO_CHECKERS.sub("", line) for line in lines).split())


def _make_place(
    one: FileDifference, hunk: _Hunk, old: Sequence[str], new: Sequence[str], most: int | None
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
