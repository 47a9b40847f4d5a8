"""The files of a commit, written for commands to change, and their changes as a patch.

They are written from git objects and read back without git: in a folder that strangers wrote to,
git would run what that folder's configuration names.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agent.errors import WorkingCopyError
from agent.sandbox.box_folders import (
    DEEPEST,
    FolderEntry,
    TooDeep,
    give_away,
    make_passable,
    remove_folder,
    walk_folder,
)
from agent.sandbox.patch import FileChange, FileVersion, format_change, hash_blob

_LINK, _SUBMODULE, _PROGRAM, _FILE = "120000", "160000", "100755", "100644"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_MAX_BYTES, _MAX_FILES = 512 << 20, 50_000  # of a commit
_MAX_OF_FILE, _MAX_CHANGED = 128 << 20, 16 << 20  # bytes of a file that is read back, and of all that changed
# Leftovers of tools, which nobody would commit.
_LEFT_BEHIND = frozenset(b"__pycache__ .pytest_cache .mypy_cache .ruff_cache .hypothesis .tox .nox .venv".split())


class CommitFile(Protocol):
    """A file of a commit: its mode, object id, size in bytes (if known), and path."""

    @property
    def mode(self) -> str:
        """The mode, as `100644`."""

    @property
    def sha(self) -> str:
        """The object's id."""

    @property
    def size(self) -> int | None:
        """The size in bytes; None for a submodule, and for an object that is missing."""

    @property
    def name(self) -> bytes:
        """The path with slashes, as in git."""


class CommitObjects(Protocol):
    """Reads the objects of a repository; both calls block."""

    def list_tree(self, sha: str) -> Sequence[CommitFile]:
        """List all files of a commit."""

    def iter_blobs(self, shas: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Read contents with their object ids, in the given order."""


class WorkingCopy:
    """A commit's files in a separate folder; the methods block, and nothing may run in it meanwhile.

    One from an earlier process can be resumed: it only needs the folder and the commit.
    """

    def __init__(self, folder: Path, objects: CommitObjects, commit: str) -> None:
        self._folder = folder
        self._objects = objects
        self._commit = commit
        self.tree = folder / "tree"

    def write(self) -> tuple[str, ...]:
        """Write the files, and return those that cannot be written, such as submodules.

        Raises `WorkingCopyError` if they are too many, or the disk has no room.
        """
        files, omissions = self._list_files()
        size = sum(file.size or 0 for file in files.values())
        if size > _MAX_BYTES or len(files) > _MAX_FILES:
            raise WorkingCopyError(
                f"The commit has {len(files):,} files of {size / 1e6:,.0f} MB in all; a working copy may have "
                f"{_MAX_FILES:,} of {_MAX_BYTES / 1e6:,.0f} MB. Choose a smaller repository."
            )
        try:
            self._folder.mkdir(mode=0o700)
            make_passable(self._folder)
            self.tree.mkdir(mode=0o700)
            give_away(self.tree)
            # Links last: until then no path leads through one.
            self._write_files([path for path, file in files.items() if file.mode != _LINK], files)
            self._write_files([path for path, file in files.items() if file.mode == _LINK], files)
        except (OSError, ValueError) as error:  # a link may lead to what is no path at all
            raise self._explain(error) from error
        return omissions

    def diff(self) -> bytes:
        """Return the changes as a patch that `git apply` takes at the commit; empty without changes."""
        return b"".join(format_change(change, self._commit) for change in self.read_changes())

    def read_changes(self) -> list[FileChange]:
        """Return the changes since the commit, by path.

        Leftovers of tools, such as `__pycache__`, do not count. Raises `WorkingCopyError` if there
        are too many.
        """
        files, omissions = self._list_files()
        changed: dict[bytes, FileVersion | None] = dict.fromkeys(files)  # gone, until they are found
        size = 0
        for path, version in self._read_files(files, {os.fsencode(path) for path in omissions}):
            file = files.get(path)
            if file and _normalize(file.mode) == version.mode and file.sha == hash_blob(version.content, self._commit):
                del changed[path]
                continue
            changed[path] = version
            size += len(version.content)
            if size > _MAX_CHANGED:
                raise WorkingCopyError(
                    f"The changed files take more than {_MAX_CHANGED >> 20} MB, too much for a patch."
                )
        old = dict(self._objects.iter_blobs({files[path].sha for path in changed if path in files}))
        return [
            FileChange(path=path, old=_find_version(files.get(path), old), new=changed[path])
            for path in sorted(changed)
        ]

    def write_changes(self, changes: Iterable[FileChange]) -> None:
        """Make changes that `read_changes` returned once, or some of them, in a copy that was only written since.

        Raises `WorkingCopyError` if one leads through a link, or to a folder, which needs an
        omitted change.
        """
        # Deletions make room for folders.
        for change in sorted(changes, key=lambda change: (change.new is not None, _is_link(change.new))):
            target = self.tree / os.fsdecode(change.path)
            if any((self.tree / os.fsdecode(parent)).is_symlink() for parent in _list_parents(change.path)):
                raise WorkingCopyError(f"{os.fsdecode(change.path)} lies behind a link, and is not written.")
            try:
                target.unlink(missing_ok=True)
                if change.new is None:
                    self._remove_empty_folders(target.parent)
                else:
                    self._write_file(target, change.new)
            except (OSError, ValueError) as error:
                raise self._explain(error) from error

    def _explain(self, error: OSError | ValueError) -> WorkingCopyError:
        advice = " Make room there, and try again." if getattr(error, "errno", 0) in _NO_ROOM else ""
        return WorkingCopyError(f"The working copy cannot be written to {self._folder}: {error}.{advice}")

    def _remove_empty_folders(self, folder: Path) -> None:
        while folder != self.tree and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

    def remove(self) -> None:
        """Remove the folder with all contents."""
        remove_folder(self._folder)

    def _list_files(self) -> tuple[dict[bytes, CommitFile], tuple[str, ...]]:
        """List the writable paths, and the rest: a git tree may contain any names."""
        items = self._objects.list_tree(self._commit)
        files = {item.name: item for item in items if item.mode != _SUBMODULE and _is_plain(item.name)}
        for path in [path for path in files if any(parent in files for parent in _list_parents(path))]:
            del files[path]  # below a name that is a file as well
        return files, tuple(os.fsdecode(item.name) for item in items if item.name not in files)

    def _write_files(self, paths: Sequence[bytes], files: Mapping[bytes, CommitFile]) -> None:
        contents = self._objects.iter_blobs(files[path].sha for path in paths)
        for path, (_, content) in zip(paths, contents, strict=True):
            version = FileVersion(mode=_normalize(files[path].mode), content=content)
            self._write_file(self.tree / os.fsdecode(path), version)

    def _write_file(self, target: Path, version: FileVersion) -> None:
        self._make_folder(target.parent)
        if _is_link(version):
            target.symlink_to(os.fsdecode(version.content))
        else:
            target.write_bytes(version.content)
            target.chmod(0o755 if version.mode == _PROGRAM else 0o644)
        give_away(target)

    def _make_folder(self, folder: Path) -> None:
        if not folder.exists():
            self._make_folder(folder.parent)
            folder.mkdir(mode=0o755)
            give_away(folder)

    def _read_files(
        self, files: Mapping[bytes, CommitFile], omitted: set[bytes]
    ) -> Iterator[tuple[bytes, FileVersion]]:
        """Read the present files and links."""
        try:
            for entry in walk_folder(self.tree):
                path = os.fsencode(entry.path)
                wanted = path in files or not (_is_left_behind(path) or omitted & {path, *_list_parents(path)})
                if wanted and not entry.is_folder and (version := _read_version(entry)) is not None:
                    yield path, version
        except TooDeep as error:
            raise WorkingCopyError("The working copy nests folders too deeply.") from error


def _read_version(entry: FolderEntry) -> FileVersion | None:
    """Read a file or a link; None for pipes and similar, which no commit can contain."""
    if not (stat.S_ISREG(entry.status.st_mode) or stat.S_ISLNK(entry.status.st_mode)):
        return None
    content = entry.read(_MAX_OF_FILE)
    if content is None:
        raise WorkingCopyError(f"{entry.path} takes more than {_MAX_OF_FILE >> 20} MB, too much for a patch.")
    if stat.S_ISLNK(entry.status.st_mode):
        return FileVersion(mode=_LINK, content=content)
    return FileVersion(mode=_PROGRAM if entry.status.st_mode & 0o100 else _FILE, content=content)


def _is_link(version: FileVersion | None) -> bool:
    return version is not None and version.mode == _LINK


def _find_version(file: CommitFile | None, contents: Mapping[str, bytes]) -> FileVersion | None:
    return None if file is None else FileVersion(mode=_normalize(file.mode), content=contents[file.sha])


def _normalize(mode: str) -> str:
    """Normalize old file modes: git now only records whether a file is executable."""
    return mode if mode == _LINK else _PROGRAM if int(mode, 8) & 0o100 else _FILE


def _is_plain(path: bytes) -> bool:
    names = path.split(b"/")
    return len(names) < DEEPEST and not any(name.lower() in {b"", b".", b"..", b".git"} for name in names)


def _is_left_behind(path: bytes) -> bool:
    return any(name in _LEFT_BEHIND or name.lower() == b".git" for name in path.split(b"/")) or path.endswith(b".pyc")


def _list_parents(path: bytes) -> list[bytes]:
    names = path.split(b"/")
    return [b"/".join(names[:end]) for end in range(1, len(names))]
