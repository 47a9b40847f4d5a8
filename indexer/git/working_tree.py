"""What the working tree of a local repository has beyond its commit: changed files; and where submodules begin."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from indexer.git.file_selection import MAX_BYTES
from indexer.git.objects import BlobReader, GitRunner, TreeItem, read_tree

_SUBMODULE = "160000"
_FILES = frozenset({"100644", "100755"})
_DEEPEST = 30  # folders
_MOST_PATHS = 50
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class WorkingTree:
    """Compares files with what is committed by their bytes alone.

    `git status` would run the filters that a repository's configuration names.
    """

    def __init__(self, git: GitRunner, blobs: BlobReader, *, root: Path, is_bare: bool) -> None:
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

    def find_submodule(self, sha: str, path: str) -> str:
        """Find the submodule that a path is or lies in, at a commit; empty where there is none."""
        parts = [part for part in path.split("/") if part not in {"", "."}][:_DEEPEST]
        if not parts or ".." in parts or "\0" in path:
            return ""
        folders = list(accumulate(parts, lambda one, other: f"{one}/{other}"))
        output = self._git.try_run("ls-tree", "-z", "--full-tree", sha, "--", *folders)
        items = TreeItem.parse_all(output or b"")
        return next((item.path for item in items if item.mode == _SUBMODULE and item.path in folders), "")


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
