"""The files of a commit in git's list, and the contents of their blobs, read from one running process."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from indexer.errors import MissingObjects, RepositoryError
from indexer.git.git_command import GitCommand, decode_output, format_path, make_missing_object_error
from indexer.git.gitattributes import UNMARKED, FileAttributes
from indexer.types import IndexLimits

OVER_FILES, OVER_BYTES, OVER_CHUNKS = "over the limit of files", "over the limit of bytes", "over the limit of chunks"
OVER_NAMES, OVER_WORDS = "over the limit of names", "over the limit of words"
NOT_FETCHED = "not fetched"  # a partial clone lacks it
OVER = frozenset({OVER_FILES, OVER_BYTES, OVER_CHUNKS, OVER_NAMES, OVER_WORDS})
_FOLDER = "040000"
_MANY = 50_000  # paths
_MAX_FOLDERS = 5_000  # listed one by one where git cannot list a whole tree


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    r"""A file of a commit that passes the path rules; `size` is in bytes.

    Bytes of the name that are not UTF-8 are written as `\xNN` in `path`. `marks` are passed on to
    `judge_content`.
    """

    path: str
    blob: str
    size: int
    marks: FileAttributes = UNMARKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Omission:
    """An unindexed entry of a commit's tree, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeListing:
    """The files of a commit: those to read, and those that the rules omit."""

    entries: tuple[TreeEntry, ...]
    omissions: tuple[Omission, ...]


def describe_limits(repository: str, skipped: Mapping[str, int], limits: IndexLimits) -> tuple[str, ...]:
    """Say that files of a repository are omitted because there are too many; empty if none are."""
    left = sum(count for reason, count in skipped.items() if reason in OVER)
    by_reason = {OVER_FILES: "`max_index_files`", OVER_BYTES: "`max_index_megabytes`"}
    names = dict.fromkeys(by_reason.get(reason, "`max_index_chunks`") for reason in sorted(OVER & {*skipped}))
    settings = " and ".join(names)
    sentence = (
        f"{left:,} files of {repository} are not indexed: at most {limits.files:,} files, {limits.bytes:,} bytes and "
        f"{limits.chunks:,} chunks of a repository are. Leave some out with `exclude`, or raise {settings}."
    )
    return (sentence,) if left else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChanges:
    """The difference between two commits: the present files at touched paths, to read or omit."""

    touched: frozenset[str]
    entries: tuple[TreeEntry, ...]
    omissions: tuple[Omission, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeItem:
    r"""One item of `git ls-tree -r -z`; `size` is None for a submodule or a missing object.

    Folders are among the items only if their own objects are missing.

    `path` is `name` as text, with bytes that are not UTF-8 written as `\xNN`.
    """

    mode: str
    sha: str
    size: int | None
    path: str
    name: bytes

    @classmethod
    def parse(cls, line: bytes) -> TreeItem:
        """Read `<mode> <type> <sha>`, with `-l` a size (or `-`, or a word in its place), a tab and the name."""
        facts, _, name = line.partition(b"\t")
        mode, _, sha, *size = facts.decode("ascii").split()
        return cls(
            mode=mode,
            sha=sha,
            size=int(size[0]) if size and size[0].isdecimal() else None,
            path=decode_output(name),
            name=name,
        )

    @classmethod
    def parse_all(cls, output: bytes) -> list[TreeItem]:
        """Read all items that git printed."""
        return [cls.parse(line) for line in output.split(b"\0") if line]


def read_tree(git: GitCommand, sha: str, *names: bytes) -> list[TreeItem]:
    """List the whole tree of a commit, or only some paths of it."""
    tree = ("-z", "--full-tree", sha, "--", *map(os.fsdecode, names))
    try:
        listed = b"" if names else git.run("ls-tree", "-r", *tree)
    except MissingObjects:
        return _walk_tree(git, sha)
    # For the sizes git looks each path up, and the same object may be at a million paths.
    output = git.try_run("ls-tree", "-r", "-l", *tree) if listed.count(b"\0") <= _MANY else None
    if output is not None:
        return TreeItem.parse_all(output)
    # In a partial clone git gives up at the size of the first object that was left out.
    try:
        items = TreeItem.parse_all(listed or git.run("ls-tree", "-r", *tree))
    except MissingObjects:
        return _walk_tree(git, sha)
    return _add_sizes(git, sha, items)


def _walk_tree(git: GitCommand, sha: str) -> list[TreeItem]:
    """List a tree folder by folder, as far as its objects exist; past a limit, folders count as missing."""
    items: list[TreeItem] = []
    folders = [(b"", git.run("ls-tree", "-z", "--full-tree", sha))]
    for folder, output in folders:
        for found in TreeItem.parse_all(output):
            name = folder + found.name
            item = replace(found, name=name, path=decode_output(name))
            below = None
            if item.mode == _FOLDER and len(folders) < _MAX_FOLDERS:
                below = git.try_run("ls-tree", "-z", item.sha)
            if below is None:
                items.append(item)
            else:
                folders.append((name + b"/", below))
    return _add_sizes(git, sha, items)


def _add_sizes(git: GitCommand, sha: str, items: Sequence[TreeItem]) -> list[TreeItem]:
    """Add the sizes of the existing objects."""
    objects = git.run("rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", sha).split()
    present = {sha.decode() for sha in objects if not sha.startswith(b"?")} & {item.sha for item in items}
    process = git.start("cat-file", "--batch-check=%(objectname) %(objectsize)")
    output, _ = process.communicate("".join(f"{sha}\n" for sha in present).encode())
    pairs = (line.decode().split() for line in output.splitlines())
    sizes = {sha: int(size) for sha, size in pairs if size.isdecimal()}
    return [replace(item, size=sizes.get(item.sha)) for item in items]


def describe_partial(repository: str, place: Path, skipped: Mapping[str, int]) -> tuple[str, ...]:
    """Say that a partial clone lacks files of the commit, and how to fetch them; empty if it lacks none."""
    left = skipped.get(NOT_FETCHED, 0)
    sentence = (
        f"{left:,} {'file' if left == 1 else 'files'} of {repository} {'is' if left == 1 else 'are'} not indexed: the "
        f"clone is partial, and citebot fetches nothing on its own. Run: git -C {shlex.quote(format_path(place))} "
        "fetch --refetch --no-filter"
    )
    return (sentence,) if left else ()


class BlobReader:
    """A `git cat-file --batch` process, started on demand and kept running."""

    def __init__(self, git: GitCommand, git_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._process: Any = None
        self._lock = threading.Lock()

    def read(self, shas: Sequence[str]) -> list[bytes]:
        """Read a window of blobs; the requests must fit a pipe, because no reply is read before all are sent."""
        with self._lock:
            process = self._process or self._git.start("cat-file", "--batch")
            self._process = process
            try:
                process.stdin.write("".join(f"{sha}\n" for sha in shas).encode())
                process.stdin.flush()
                return [self._read_reply(process, sha) for sha in shas]
            except OSError as error:
                self._stop()
                raise RepositoryError(f"git stopped while reading {format_path(self._git_dir)}. Try again.") from error
            except BaseException:
                # Replies may be left in the pipe, and would be taken for those of the next request.
                self._stop()
                raise

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _read_reply(self, process: Any, sha: str) -> bytes:
        header: list[bytes] = process.stdout.readline().split()
        if len(header) != 3:
            raise make_missing_object_error(sha, self._git_dir)
        size = int(header[2])
        data: bytes = process.stdout.read(size + 1)
        if len(data) != size + 1:
            raise make_missing_object_error(sha, self._git_dir)
        return data[:-1]

    def _stop(self) -> None:
        if self._process is not None:
            self._process._terminate()  # noqa: SLF001 - closes the pipes, ends the process and waits; there is no public name
            self._process = None
