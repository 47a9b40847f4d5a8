"""Maps the paths that people and stack traces write onto the files that are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from agent.evidence.refs import is_test_or_docs
from agent.ports import SourceFiles
from indexer.types import FileEntry


class FilePathLookup:
    """The indexed files that any of the written paths may mean, found by any unmistakable end of their path."""

    def __init__(self, files: Sequence[FileEntry], written: Iterable[str]) -> None:
        # Of thousands of files a few end alike: to look at every end once costs less than to take every path apart.
        ends = tuple({parts[-1] for parts in map(_split_path, written) if parts})
        self._files = [entry for entry in files if entry.path.endswith(ends)]

    def find(self, written: str) -> FileEntry | None:
        """Return the one file that the written path means; None when none or several fit equally well."""
        alike = self.find_alike(written)
        return alike[0] if len(alike) == 1 else None

    def find_alike(self, written: str) -> list[FileEntry]:
        """Return the files that the written path may mean, all of which fit equally well."""
        wanted = _split_path(written)
        if not wanted:
            return []
        alike = [entry for entry in self._files if entry.path.endswith(wanted[-1])]
        fits = [(_count_shared_end(wanted, _split_path(entry.path)), entry) for entry in alike]
        # One path ends in the whole of the other, or they share a folder: a file name alone proves little.
        good = [(n, entry) for n, entry in fits if n >= min(len(wanted), len(_split_path(entry.path)), 2)]
        if not good:
            return []
        best = max(shared for shared, _ in good)
        winners = [entry for shared, entry in good if shared == best]
        exact = [entry for entry in winners if _split_path(entry.path) == wanted]
        return exact or winners


def _split_path(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _count_shared_end(left: list[str], right: list[str]) -> int:
    shared = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        shared += 1
    return shared


async def find_folder(code: SourceFiles, written: str) -> str | None:
    """Return the one indexed folder that a written path means: whole, or the end of one, of the code before tests."""
    path = written.strip("./ ")
    folders = await code.folders()
    if path in folders:
        return path
    ending = [folder for folder in folders if folder.lower().endswith(f"/{path.lower()}") or folder == path]
    shortest = min((folder.count("/") for folder in ending), default=0)
    nearest = [folder for folder in ending if folder.count("/") == shortest]
    if len(nearest) > 1:
        holding = {str(PurePosixPath(entry.path).parent) for entry in await code.files() if entry.source_type == "code"}
        nearest = [folder for folder in nearest if folder in holding and not is_test_or_docs(folder)]
    return nearest[0] if len(nearest) == 1 else None
