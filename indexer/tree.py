"""The files of a commit, as git lists them and as the rules leave them."""

from __future__ import annotations

from dataclasses import dataclass

from indexer.attributes import UNMARKED, Marks
from indexer.complaints import text


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    """A file of a commit that the path rules let through; `size` is in bytes.

    Bytes of the name that are no UTF-8 stand as `\\xNN` in `path`. `marks` belong to `content_verdict`.
    """

    path: str
    blob: str
    size: int
    marks: Marks = UNMARKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The files of a commit: those to read, and how many were left out for which reason."""

    entries: tuple[TreeEntry, ...]
    skipped: dict[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """From one commit to another: `removed` paths are gone or no longer wanted, `entries` are new or changed."""

    removed: frozenset[str]
    entries: tuple[TreeEntry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeItem:
    """One item of `git ls-tree -r -l -z`; `size` is None for a submodule, and where the object is missing."""

    mode: str
    sha: str
    size: int | None
    path: str

    @classmethod
    def parse(cls, line: bytes) -> TreeItem:
        """Read `<mode> <type> <sha> <size>`, a tab and the name; in place of a size there may be `-` or a word."""
        facts, _, name = line.partition(b"\t")
        mode, _, sha, size = facts.decode("ascii").split()
        return cls(mode=mode, sha=sha, size=int(size) if size.isdecimal() else None, path=text(name))
