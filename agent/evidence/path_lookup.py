"""Maps the paths that people and stack traces write onto the files that are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from indexer.types import FileEntry


class FilePathLookup:
    """The indexed files that any of the written paths may mean, found by any unmistakable end of their path."""

    def __init__(self, files: Sequence[FileEntry], written: Iterable[str]) -> None:
        # Of thousands of files a few end alike: to look at every end once costs less than to take every path apart.
        ends = tuple({parts[-1] for parts in map(_split_path, written) if parts})
        self._files = [entry for entry in files if entry.path.endswith(ends)]

    def find(self, written: str) -> FileEntry | None:
        """Return the one file that the written path means; None when none or several fit equally well."""
        wanted = _split_path(written)
        if not wanted:
            return None
        alike = [entry for entry in self._files if entry.path.endswith(wanted[-1])]
        fits = [(_count_shared_end(wanted, _split_path(entry.path)), entry) for entry in alike]
        # One path ends in the whole of the other, or they share a folder: a file name alone proves little.
        good = [(n, entry) for n, entry in fits if n >= min(len(wanted), len(_split_path(entry.path)), 2)]
        if not good:
            return None
        best = max(shared for shared, _ in good)
        winners = [entry for shared, entry in good if shared == best]
        exact = [entry for entry in winners if _split_path(entry.path) == wanted]
        choice = exact or winners
        return choice[0] if len(choice) == 1 else None


def _split_path(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _count_shared_end(left: list[str], right: list[str]) -> int:
    shared = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        shared += 1
    return shared
