"""The files of a commit as git lists them, and the contents of their blobs, from one running process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from indexer.errors import RepositoryError
from indexer.git.git_errors import decode_output, format_path, make_missing_object_error
from indexer.git.gitattributes import UNMARKED, FileAttributes


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    """A file of a commit that the path rules let through; `size` is in bytes.

    Bytes of the name that are no UTF-8 stand as `\\xNN` in `path`. `marks` belong to `content_verdict`.
    """

    path: str
    blob: str
    size: int
    marks: FileAttributes = UNMARKED


@dataclass(frozen=True, kw_only=True, slots=True)
class Omission:
    """Something in the tree of a commit that is not indexed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeListing:
    """The files of a commit: those to read, and those that the rules left out."""

    entries: tuple[TreeEntry, ...]
    omissions: tuple[Omission, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChanges:
    """From one commit to another: what is now at the paths that were touched, to be read or left out."""

    touched: frozenset[str]
    entries: tuple[TreeEntry, ...]
    omissions: tuple[Omission, ...]

    @property
    def removals(self) -> frozenset[str]:
        """The paths that are gone or no longer wanted."""
        return self.touched - {entry.path for entry in self.entries}


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeItem:
    """One item of `git ls-tree -r -z`; `size` is None for a submodule, and where the object is missing."""

    mode: str
    sha: str
    size: int | None
    path: str

    @classmethod
    def parse(cls, line: bytes) -> TreeItem:
        """Read `<mode> <type> <sha>`, with `-l` a size (or `-`, or a word in its place), a tab and the name."""
        facts, _, name = line.partition(b"\t")
        mode, _, sha, *size = facts.decode("ascii").split()
        return cls(
            mode=mode, sha=sha, size=int(size[0]) if size and size[0].isdecimal() else None, path=decode_output(name)
        )

    @classmethod
    def parse_all(cls, output: bytes) -> list[TreeItem]:
        """Read every item that git printed."""
        return [cls.parse(line) for line in output.split(b"\0") if line]


class GitRunner(Protocol):
    """Runs git commands in a repository."""

    def run(self, *arguments: str) -> bytes:
        """Return the output; a failure raises `RepositoryError`."""

    def try_run(self, *arguments: str, seconds: float | None = None) -> bytes | None:
        """Return the output, or None for a failure or for taking longer."""

    def start(self, *arguments: str) -> Any:
        """Start a process that is spoken with through pipes."""


def read_tree(git: GitRunner, sha: str, *names: bytes) -> list[TreeItem]:
    """List the whole tree of a commit, or what is at some paths."""
    where = ("-z", "--full-tree", sha, "--", *map(os.fsdecode, names))
    output = git.try_run("ls-tree", "-r", "-l", *where)
    if output is not None:
        return TreeItem.parse_all(output)
    # In a partial clone git gives up at the size of the first object that was left out.
    items = TreeItem.parse_all(git.run("ls-tree", "-r", *where))
    objects = git.run("rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", sha).split()
    present = {each.decode() for each in objects if not each.startswith(b"?")}
    sizes = _sizes(git, present & {item.sha for item in items})
    return [replace(item, size=sizes.get(item.sha)) for item in items]


def _sizes(git: GitRunner, shas: Iterable[str]) -> dict[str, int]:
    process = git.start("cat-file", "--batch-check=%(objectname) %(objectsize)")
    output, _ = process.communicate("".join(f"{sha}\n" for sha in shas).encode())
    pairs = (line.decode().split() for line in output.splitlines())
    return {sha: int(size) for sha, size in pairs if size.isdecimal()}


class BlobReader:
    """A `git cat-file --batch` that is kept running, and started when it is first needed."""

    def __init__(self, git: GitRunner, git_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._process: Any = None
        self._lock = threading.Lock()

    def read(self, shas: Sequence[str]) -> list[bytes]:
        """Read a window of blobs; the requests must fit a pipe, as no reply is taken before all are sent."""
        with self._lock:
            process = self._process or self._git.start("cat-file", "--batch")
            self._process = process
            try:
                process.stdin.write("".join(f"{sha}\n" for sha in shas).encode())
                process.stdin.flush()
                return [self._reply(process, sha) for sha in shas]
            except OSError as error:
                self._stop()
                raise RepositoryError(f"git stopped while reading {format_path(self._git_dir)}. Try again.") from error
            except BaseException:
                # Replies may be left in the pipe, and would answer the next request.
                self._stop()
                raise

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _reply(self, process: Any, sha: str) -> bytes:
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
