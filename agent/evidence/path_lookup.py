"""Maps paths in messages and stack traces onto the paths of a commit."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Generic, TypeVar
from urllib.parse import unquote

from agent.evidence.refs import is_test_or_docs
from agent.ports import CodeSearch, SourceFiles
from indexer.errors import UnknownRevision
from indexer.types import DiffQuery, FileEntry, LeftOut, LogQuery

Entry = TypeVar("Entry", FileEntry, LeftOut)


class FilePathLookup(Generic[Entry]):
    """The files that any of the written paths may mean, found by any unambiguous ending.

    Ignores case, Unicode form, percent signs and the direction of slashes, unless they distinguish
    two files.
    """

    def __init__(self, files: Sequence[Entry], written: Iterable[str]) -> None:
        # Of thousands of files a few end alike: to look at every end once costs less than to take every path apart.
        ends = tuple({parts[-1] for parts in map(_split_path, written) if parts})
        self._files: list[Entry] = [entry for entry in files if fold_name(entry.path).endswith(ends)]

    def find(self, written: str) -> Entry | None:
        """Return the one file that a written path means; None if none or several match."""
        alike = self.find_alike(written)
        return alike[0] if len(alike) == 1 else None

    def find_alike(self, written: str) -> list[Entry]:
        """Return the files that a written path may mean, all equally well."""
        wanted = _split_path(written)
        if not wanted:
            return []
        alike = [(_split_path(entry.path), entry) for entry in self._files]
        fits = [(_count_shared_end(wanted, parts), parts, entry) for parts, entry in alike if parts[-1] == wanted[-1]]
        # One path ends in the whole of the other, or they share a folder: a file name alone proves little.
        good = [(n, parts, entry) for n, parts, entry in fits if n >= min(len(wanted), len(parts), 2)]
        if not good:
            return []
        best = max(shared for shared, _, _ in good)
        winners = [(parts, entry) for shared, parts, entry in good if shared == best]
        exact = [entry for parts, entry in winners if parts == wanted] or [entry for _, entry in winners]
        return [entry for entry in exact if entry.path.endswith(written.strip("./ "))] or exact


@lru_cache(maxsize=1 << 16)  # a question is compared with every path of a repository
def fold_name(path: str) -> str:
    """Fold the differences that common file systems ignore: case and Unicode form."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def fold_path(written: str) -> str:
    """Fold a written path in the same way: forward slashes, decoded percent signs, from the repository's root."""
    path = unquote(written) if "%" in written else written
    parts = path.replace("\\", "/").split("/")
    return fold_name("/".join(part for part in parts if part not in {"", "."}))


def _split_path(path: str) -> list[str]:
    return fold_path(path).split("/") if path.strip("./ ") else []


def _count_shared_end(left: list[str], right: list[str]) -> int:
    shared = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        shared += 1
    return shared


async def find_folder(code: SourceFiles, written: str) -> str | None:
    """Return the one indexed folder that a written path or its end means, code before tests."""
    path = fold_path(written.strip("./ "))
    folders = await code.folders()
    if written.strip("./ ") in folders:
        return written.strip("./ ")
    ending = [folder for folder in folders if f"/{fold_name(folder)}".endswith(f"/{path}")] if path else []
    shortest = min((folder.count("/") for folder in ending), default=0)
    nearest = [folder for folder in ending if folder.count("/") == shortest]
    if len(nearest) > 1:
        holding = {str(PurePosixPath(entry.path).parent) for entry in await code.files() if entry.source_type == "code"}
        nearest = [folder for folder in nearest if folder in holding and not is_test_or_docs(folder)]
    return nearest[0] if len(nearest) == 1 else None


_MAX_MOVES = 4  # renames that are followed


@dataclass(frozen=True, kw_only=True, slots=True)
class FormerPath:
    """The fate of a file: its present path, empty if it was removed, and the last commit that touched the old path.

    It `is_removed` if that commit is known to have removed it.
    """

    path: str
    commit: str
    is_removed: bool = False


async def follow_path(code: CodeSearch, path: str) -> FormerPath | None:
    """Find what happened to a path, or to the last removed file with that name; None if no known commit touched it."""
    if "/" not in path and not (await code.past.log(LogQuery(path=path, limit=1))).revisions:
        path = next(iter(await code.past.find_former_paths(path)), path)
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
    """Return a file's new name in a commit, empty without one, and whether the commit removed it."""
    try:
        compared = await code.past.compare(DiffQuery(after=f"{sha}~1", until=sha, limit=0))
    except UnknownRevision:  # it is the first that is known
        return "", False
    moved = next((one.path for one in compared.files if one.former == path), "")
    return moved, any(one.path == path and one.fate == "removed" for one in compared.files)
