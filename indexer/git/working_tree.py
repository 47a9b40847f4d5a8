"""Compares the working tree of a local repository with its commit: changed files, and new ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from indexer.git.file_selection import MAX_BYTES
from indexer.git.git_command import GitCommand
from indexer.git.git_errors import decode_output
from indexer.git.objects import BlobReader, TreeItem, read_tree

_FILES = frozenset({"100644", "100755"})
_MOST_PATHS = 50
_MOST_READ = 500  # files
_LISTING = 3.0  # seconds
_Staged = tuple[bytes, int, int]
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class WorkingTree:
    """Compares files with what is committed by their bytes alone.

    `git status` would run the filters that a repository's configuration names.
    """

    def __init__(self, git: GitCommand, blobs: BlobReader, *, root: Path, is_bare: bool) -> None:
        self._git = git
        self._blobs = blobs
        self._root = root
        self._is_bare = is_bare

    def list_uncommitted(self, paths: Sequence[str]) -> tuple[str, ...]:
        """List those of some paths whose file differs from the commit that is checked out; none in a bare one."""
        if self._is_bare or not paths:
            return ()
        names = [os.fsencode(path) for path in paths[:_MOST_PATHS]]
        items = [item for item in read_tree(self._git, "HEAD", *names) if item.mode in _FILES]
        return tuple(item.path for item in items if item.path in paths and self._is_changed(item))

    def _is_changed(self, item: TreeItem) -> bool:
        if item.size is None or item.size > MAX_BYTES:
            return False
        file = self._root / item.path
        try:
            data = _read_file(file)
        except FileNotFoundError:
            return file.parent.is_dir()  # whole folders are missing where only some were checked out
        except OSError:
            return True  # something else has taken the place of the file
        committed = self._blobs.read([item.sha])[0]
        return data is None or _unify_lines(data) != _unify_lines(committed)

    def list_all_uncommitted(self, sha: str) -> tuple[str, ...]:
        """List the differences from a commit, new files included; nothing unless that commit is checked out.

        Times and sizes in git's index decide which files must be read at all.
        """
        if self._is_bare or (self._git.try_run("rev-parse", "HEAD") or b"").strip() != sha.encode():
            return ()
        staged = self._list_staged()
        if not staged:  # in a layout that git does not print so
            return ()
        touched = [
            item for item in read_tree(self._git, sha) if item.mode in _FILES and self._is_touched(item, staged)
        ][:_MOST_READ]
        changed = [item.path for item in touched if self._is_changed(item)]
        here = ("-C", str(self._root), f"--work-tree={self._root}")
        new = self._git.try_run(*here, "ls-files", "--others", "--exclude-standard", "-z", seconds=_LISTING) or b""
        return (*changed, *(decode_output(name) for name in new.split(b"\0") if name))

    def _list_staged(self) -> dict[bytes, _Staged]:
        """List what git's index knows of each file: its blob, its time in nanoseconds, its size."""
        output = self._git.try_run("ls-files", "--stage", "--debug", "-z", seconds=_LISTING) or b""
        staged: dict[bytes, _Staged] = {}
        head = b""
        for part in output.split(b"\0"):  # `mode sha stage TAB name`, then lines of facts before the next of these
            facts, _, following = part.rpartition(b"\n")
            known = dict(word.partition(b":")[::2] for line in facts.splitlines() for word in line.strip().split(b"\t"))
            seconds, _, nanoseconds = known.get(b"mtime", b"").strip().partition(b":")
            size = known.get(b"size", b"").strip()
            if head and seconds.isdigit() and nanoseconds.isdigit() and size.isdigit():
                sha, _, name = head.partition(b"\t")
                staged[name] = (sha.split()[1], int(seconds) * 10**9 + int(nanoseconds), int(size))
            head = following
        return staged

    def _is_touched(self, item: TreeItem, staged: Mapping[bytes, _Staged]) -> bool:
        try:
            found = os.lstat(self._root / item.path)
        except OSError:
            return True
        return staged.get(item.name) != (item.sha.encode(), found.st_mtime_ns, found.st_size)


def _read_file(file: Path) -> bytes | None:
    """Read a file of the working tree; None for one that is larger than any that is indexed, or no file at all."""
    handle = os.open(file, _OPEN)
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        data = opened.read(MAX_BYTES + 1)
        return data if len(data) <= MAX_BYTES else None


def _unify_lines(data: bytes) -> bytes:
    """Write line ends as git stores them, whatever the checkout made of them."""
    return data.replace(b"\r\n", b"\n")
