"""Follows a path that the commit no longer has to what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from agent.ports import CodeSearch
from indexer.errors import UnknownRevision
from indexer.types import DiffQuery, LogQuery

_MAX_MOVES = 4  # renames that are followed


@dataclass(frozen=True, kw_only=True, slots=True)
class FormerPath:
    """The fate of a file: its present path, empty if it is gone, and the last commit that touched the old path.

    It `is_removed` where that commit is known to have removed it.
    """

    path: str
    commit: str
    is_removed: bool = False


async def follow_path(code: CodeSearch, path: str) -> FormerPath | None:
    """Find what became of a path; None if no commit that is known touched it."""
    files = {entry.path for entry in await code.files()}
    first = ""
    for _ in range(_MAX_MOVES):
        touched = (await code.past.log(LogQuery(path=path, limit=1))).revisions
        if not touched:
            return None
        first = first or touched[0].sha
        moved, is_removed = await _find_fate(code, touched[0].sha, path)
        if not moved or moved in files:
            return FormerPath(path=moved, commit=first, is_removed=is_removed)
        path = moved
    return None


async def _find_fate(code: CodeSearch, sha: str, path: str) -> tuple[str, bool]:
    """Return what a commit has renamed a file to, empty if it has not, and whether it has removed it."""
    try:
        compared = await code.past.compare(DiffQuery(after=f"{sha}~1", until=sha, limit=0))
    except UnknownRevision:  # it is the first that is known
        return "", False
    moved = next((one.path for one in compared.files if one.former == path), "")
    return moved, any(one.path == path and one.fate == "removed" for one in compared.files)
