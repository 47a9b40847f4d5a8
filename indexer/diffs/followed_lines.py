"""Follows cited lines through a push: one diff for all of them, and arithmetic on its hunks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import accumulate
from pathlib import Path, PurePosixPath

from indexer.diffs.patch import (
    MAX_MOVES,
    MAX_WORDS_READ,
    PATCH_OPTIONS,
    WORD,
    Hunk,
    Patch,
    list_words,
    read_patch,
    read_raw,
)
from indexer.diffs.python_types import drop_types
from indexer.git.git_command import decode_output
from indexer.git.repository import Repository
from indexer.text.decoding import decode_file
from indexer.text.languages import find_language_by_ending
from indexer.types import TELLING_FATES, CitedLines, FollowedLines, LineFate

_TIMEOUT_SECONDS = 20.0
_MAX_COMPARED = 20_000  # lines of a file that git does not compare
_WINDOW = 3  # lines that have to come again together
_SHARE_FOUND = 0.8  # of these windows, for a move
_SHARE_KEPT = 0.5  # of the lines, below which it is another text
_MIN_LINE, _MIN_MOVE = 4, 30  # characters, below which lines come again by chance
_PATCH = ("diff-tree", "-r", "-p", *PATCH_OPTIONS, "--submodule=short")
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev")
_PYTHON = (".py", ".pyi")
_NO_FILES = frozenset({"160000", "120000"})  # modes of submodules and symlinks


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed file: its newer name, empty if it was removed, and its contents on both sides."""

    path: str
    old_blob: str
    new_blob: str


@dataclass(frozen=True, slots=True)
class Shift:
    """The effect of hunks on lines: how many hunks touch them, how many lines stay, and their new range."""

    touched: int
    kept: int
    start: int
    end: int


def open_push(path: Path, older: str, newer: str) -> Push | None:
    """Open the difference between two commits of the repository at a path; the newer need not descend from the older.

    None if one of the two is missing. Close it; raises `RepositoryError`.
    """
    repository = Repository.open(path)
    push = None
    try:
        push = _read_push(repository, older, newer)
    finally:
        if push is None:
            repository.close()
    return push


def _read_push(repository: Repository, older: str, newer: str) -> Push | None:
    run = partial(repository.git.try_run, seconds=_TIMEOUT_SECONDS)
    renames: tuple[str, ...] = ("-M", "-l0")
    output = run(*_RAW, *renames, older, newer, "--")
    if output is None:  # too many renames to look for, or a commit that is not here
        renames = ("--no-renames",)
        output = run(*_RAW, *renames, older, newer, "--")
    if output is None:
        return None
    patch = run(*_PATCH, *renames, older, newer, "--")
    return Push(repository, dict(_read_changes(output)), patch)


def shift_range(hunks: Sequence[Hunk], start: int, end: int) -> Shift:
    """Shift a range of lines by a file's hunks, in order.

    A touched range reaches from the image of its first line to that of its last, replacements included; if nothing
    replaced it, it ends before it begins. An insertion directly above or below is outside.
    """
    delta, touched, kept, first = 0, 0, end - start + 1, start
    for hunk in hunks:
        final = hunk.old_line + max(hunk.old_count - 1, 0)
        if hunk.old_line > end or (hunk.old_count == 0 and hunk.old_line == end):
            break
        if final >= start:
            if not touched:
                begins_before = hunk.old_count and hunk.old_line <= start
                first = hunk.new_line + (hunk.new_count == 0) if begins_before else start + delta
            touched += 1
            kept -= min(final, end) - max(hunk.old_line, start) + 1 if hunk.old_count else 0
            if final > end:
                return Shift(touched, kept, first, hunk.new_line + max(hunk.new_count - 1, 0))
        delta += hunk.new_count - hunk.old_count
    return Shift(touched, kept, first if touched else start + delta, end + delta)


class Push:
    """The difference between two commits, and its effect on lines cited at the older one.

    `paths` are the changed files, by their older names; `words` those of all added or removed
    lines, None if there are too many.
    """

    def __init__(self, repository: Repository, changes: Mapping[str, _Change], patch: bytes | None) -> None:
        self._repository = repository
        self._changes = changes
        self.paths = frozenset(changes)
        self._patch = read_patch(patch) if patch is not None else Patch()
        self.words = frozenset(self._patch.words) if patch is not None and len(patch) <= MAX_WORDS_READ else None
        self._texts: dict[str, list[str]] = {}
        self._places: dict[str, list[tuple[str, int]]] | None = None

    def close(self) -> None:
        """Close the repository."""
        self._repository.close()

    def follow(self, cited: CitedLines) -> FollowedLines:
        """Follow one range of lines."""
        change = self._changes.get(cited.path)
        here = FollowedLines(path=cited.path, start_line=cited.start_line, end_line=cited.end_line, fate="same")
        if change is None:
            return here
        if not change.path:
            return self._find_moved(cited, change) or replace(here, fate="gone")
        if change.old_blob == change.new_blob:
            return replace(here, path=change.path, fate="same" if change.path == cited.path else "moved")
        shift = shift_range(self._list_hunks(change), cited.start_line, cited.end_line)
        there = FollowedLines(path=change.path, start_line=shift.start, end_line=shift.end, fate="same")
        if not shift.touched:
            is_here = (there.path, there.start_line) == (here.path, here.start_line)
            return there if is_here else replace(there, fate="moved")
        fate = self._judge(cited, change, shift)
        moved = self._find_moved(cited, change) if fate in TELLING_FATES and not shift.kept else None
        return moved or replace(here if fate == "gone" else there, fate=fate)

    def _judge(self, cited: CitedLines, change: _Change, shift: Shift) -> LineFate:
        """Describe how lines differ from their replacement."""
        old = self._read(change.old_blob)[cited.start_line - 1 : cited.end_line]
        new = self._read(change.new_blob)[shift.start - 1 : shift.end]
        if not new:
            return "gone"
        if _has_lines(new, _squeeze(old)) or _is_rewrapped(old, new):
            return "reformatted"
        before, after = (Counter(word.lower() for word in WORD.findall("\n".join(side))) for side in (old, new))
        changed = frozenset((before - after) | (after - before))
        if not cited.words & changed and _means_the_same(old, new, change.path):
            return "commented"
        is_named = bool(cited.words & _list_words_of_changed_lines(old, new))
        share = shift.kept / (cited.end_line - cited.start_line + 1)
        is_close = share >= _SHARE_KEPT and changed and not is_named
        return "edited" if is_close else "changed"

    def _list_hunks(self, change: _Change) -> Sequence[Hunk]:
        """Return the hunks of a file; if git compares it as binary, or not at all, those of its lines."""
        hunks = self._patch.hunks.get((change.old_blob, change.new_blob))
        if hunks is not None:
            return hunks
        old, new = (self._read(blob)[:_MAX_COMPARED] for blob in (change.old_blob, change.new_blob))
        opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [
            Hunk(a1 + (a2 > a1), a2 - a1, b1 + (b2 > b1), b2 - b1) for tag, a1, a2, b1, b2 in opcodes if tag != "equal"
        ]

    def _read(self, blob: str) -> list[str]:
        if blob not in self._texts:
            data = next(data for _, data in self._repository.iter_blobs([blob]))
            self._texts[blob] = (decode_file(data) or "").split("\n")
        return self._texts[blob]

    def _find_moved(self, cited: CitedLines, change: _Change) -> FollowedLines | None:
        """Find deleted lines among the added ones: nearly all of them in order, in exactly one place."""
        old = self._read(change.old_blob)[cited.start_line - 1 : cited.end_line]
        telling = [(number, text) for number, line in enumerate(old) if len(text := _squeeze([line])) >= _MIN_LINE]
        if sum(len(text) for _, text in telling) < _MIN_MOVE:
            return None
        places = self._index_added()
        size = min(_WINDOW, len(telling))
        windows = [telling[first : first + size] for first in range(len(telling) - size + 1)]
        votes = Counter[tuple[str, int]]()
        for window in windows:
            found = ({(blob, line - number) for blob, line in places.get(text, ())} for number, text in window)
            votes.update(set.intersection(*found))
        best = votes.most_common(2)
        if not best or best[0][1] < _SHARE_FOUND * len(windows) or (len(best) > 1 and 2 * best[1][1] >= best[0][1]):
            return None
        (blob, start), _ = best[0]
        paths = [one.path for one in self._changes.values() if one.new_blob == blob]
        if len(paths) != 1:
            return None
        (path,) = paths
        end = start + cited.end_line - cited.start_line
        return FollowedLines(path=path, start_line=start, end_line=end, fate="moved")

    def _index_added(self) -> Mapping[str, Sequence[tuple[str, int]]]:
        if self._places is None:
            self._places = defaultdict(list)
            for blob, line, text in self._patch.added[:MAX_MOVES]:
                self._places[_squeeze([text])].append((blob, line))
        return self._places


def _read_changes(output: bytes) -> Iterator[tuple[str, _Change]]:
    """Read the files that differ, by their older names, where new ones have no other."""
    for raw in read_raw(output):
        path = "" if raw.mode in _NO_FILES else decode_output(raw.new)
        yield decode_output(raw.old or raw.new), _Change(path, raw.old_blob, raw.new_blob)


def _squeeze(lines: Sequence[str]) -> str:
    """Return lines without the parts that formatters change: white space, kind of quotes, commas, prompts."""
    bare = "".join(line.lstrip().removeprefix("$ ") for line in lines)
    return "".join(bare.split()).replace("'", '"').replace(",", "")


def _has_lines(lines: Sequence[str], text: str) -> bool:
    """Whether some of the lines, in order, form a squeezed text."""
    pieces = [_squeeze([line]) for line in lines]
    ends = list(accumulate(map(len, pieces), initial=0))
    whole, bounds = "".join(pieces), frozenset(ends)
    if not text:
        return not whole
    return any(whole.startswith(text, at) and at + len(text) in bounds for at in bounds)


def _is_rewrapped(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether lines were only joined or split, with added or removed brackets."""
    without = str.maketrans("", "", "()")
    return len(old) != len(new) and _squeeze(old).translate(without) == _squeeze(new).translate(without)


def _means_the_same(old: Sequence[str], new: Sequence[str], path: str) -> bool:
    """Whether lines differ only in comments, or in Python also in type-checking code."""
    code = _squeeze(_drop_comments(old, path))
    if code and code == _squeeze(_drop_comments(new, path)):
        return True
    untyped = drop_types(old) if path.endswith(_PYTHON) else None
    return untyped is not None and untyped == drop_types(new)


def _list_words_of_changed_lines(old: Sequence[str], new: Sequence[str]) -> frozenset[str]:
    """Return the words of the lines on only one side."""
    before, after = (Counter(map(str.strip, side)) for side in (old, new))
    return list_words([*(before - after), *(after - before)])


def _drop_comments(lines: Sequence[str], path: str) -> Sequence[str]:
    """Return the lines without comments, except after a string, where the sign may be part of it."""
    language = find_language_by_ending(PurePosixPath(path).suffix.lower().removeprefix("."))
    marks = language.line_comments if language is not None else ()
    return [cut for line in lines if (cut := _cut_comment(line, marks))]


def _cut_comment(line: str, marks: Sequence[str]) -> str:
    """Return a line up to its comment, if any."""
    if line.lstrip().startswith(tuple(marks)):
        return ""
    ends = [at for mark in marks if (at := line.find(f" {mark}")) >= 0]
    return line[: min(ends)] if ends and not {'"', "'", "`"} & set(line) else line
