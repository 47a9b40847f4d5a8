"""The head of a local repository; modification times of a few small files reveal changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from indexer.errors import RepositoryError
from indexer.git.repository import Repository
from indexer.types import BranchHead

_Stamp = tuple[tuple[int, int, int] | None, ...]


class LocalHead:
    """The tip of a local repository's branch, or of the checkout if no branch is given.

    Git runs only when HEAD, the branch's file, the packed refs or the list of ref tables has changed, so checking every
    second costs almost nothing.
    """

    def __init__(self, name: str, path: Path, *, branch: str | None = None) -> None:
        self.name = name
        self._path = path
        self._ref = "HEAD" if branch is None else f"refs/heads/{branch}"
        self._known: tuple[_Stamp, BranchHead | RepositoryError] = ((), RepositoryError("Nobody has looked yet."))
        self._folders: tuple[Path, Path] | None = None

    async def newest(self) -> BranchHead:
        """Return the current commit; `RepositoryError` if there is none, or no repository."""
        return await asyncio.to_thread(self._read_newest)

    def _read_newest(self) -> BranchHead:
        # Changes before git runs are noticed the next time.
        stamp = self._read_stamps()
        if not any(stamp) or stamp != self._known[0]:
            self._known = (stamp, self._read_head())
        head = self._known[1]
        if isinstance(head, RepositoryError):
            raise head
        return head

    def _read_head(self) -> BranchHead | RepositoryError:
        try:
            with Repository.open(self._path) as repository:
                self._folders = (repository.git_dir, _find_common_folder(repository.git_dir))
                commit = repository.commit(self._ref)
        except RepositoryError as error:
            return error
        return BranchHead(commit=commit.sha, branch=commit.branch)

    def _read_stamps(self) -> _Stamp:
        if self._folders is None:
            return ()
        own, common = self._folders
        branch = self._ref if self._ref != "HEAD" else _read_branch(own / "HEAD")
        files = [own / "HEAD", common / "packed-refs", common / "reftable/tables.list", own / "reftable/tables.list"]
        return tuple(map(_read_stamp, [*files, *([common / branch] if branch else [])]))


def _find_common_folder(git_dir: Path) -> Path:
    """Return the folder that a worktree shares with others."""
    try:
        shared = (git_dir / "commondir").read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return git_dir
    return git_dir / shared


def _read_branch(head: Path) -> str | None:
    """Read the branch that HEAD names; None if it names a commit."""
    try:
        content = head.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return content.removeprefix("ref: ").strip() if content.startswith("ref: ") else None


def _read_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
