"""Saves the data folder in one file, while others go on using it."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bot.disk_use import PROMPTS
from bot.errors import BackupError
from bot.manifest import DATABASES, NAME, BackupManifest, BackupMember
from bot.occupancy import hold_shared_lock
from indexer.copying import copy_database, copy_index
from indexer.folders import REPOSITORIES

_QUICK = 1  # of gzip's levels: half the size at a tenth of the time
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_backup(home: Path, file: Path, *, now: float, indexes: bool, force: bool) -> BackupManifest:
    """Save a data folder as a file that its owner alone can read; it is there as a whole, or not at all.

    Everything is copied beside the file first. An existing file is replaced with `force` alone. Raises `BackupError`
    or `StorageError`, each with a sentence.
    """
    if file.is_dir():
        raise BackupError(f"{file} is a folder. Name the file to be made in it.")
    if file.exists() and not force:
        raise BackupError(f"{file} already exists. Give another name, or replace it with --force.")
    with (
        map_file_errors(file, disk=file),
        tempfile.TemporaryDirectory(prefix=".citebot-", dir=file.absolute().parent) as draft,
    ):
        copies, packed = Path(draft, "copies"), Path(draft, "packed")
        copies.mkdir()
        if home.is_dir():
            with hold_shared_lock(home):
                _copy(home, copies, indexes=indexes)
        manifest = BackupManifest(made_at=now, indexes=indexes, members=_members(copies))
        if not manifest.members:
            raise BackupError(f"There is nothing to save in {home}. CITEBOT_HOME names another data folder.")
        _pack(copies, manifest, packed)
        packed.replace(file)
    return manifest


def _copy(home: Path, copies: Path, *, indexes: bool) -> None:
    for name in DATABASES:
        if (home / name).exists():
            with _database_errors(home / name):
                copy_database(home / name, copies / name)
    if (home / PROMPTS).exists():
        shutil.copyfile(home / PROMPTS, copies / PROMPTS)
    folders = sorted((home / REPOSITORIES).glob("*/catalog.sqlite")) if indexes else []
    for catalog in folders:
        copy_index(catalog.parent, copies / REPOSITORIES / catalog.parent.name)


def _members(copies: Path) -> Sequence[BackupMember]:
    return [_member(path, copies) for path in sorted(copies.rglob("*")) if path.is_file()]


def _member(path: Path, copies: Path) -> BackupMember:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BackupMember(name=path.relative_to(copies).as_posix(), size=path.stat().st_size, sha256=digest)


def _pack(copies: Path, manifest: BackupManifest, packed: Path) -> None:
    """Write the archive: the list of contents first, so that whoever reads it knows what is to come."""
    packed.touch(mode=0o600)
    with packed.open("wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_QUICK) as archive:
            listed = manifest.to_bytes()
            archive.addfile(_header(NAME, len(listed), manifest.made_at), io.BytesIO(listed))
            for member in manifest.members:
                with (copies / member.name).open("rb") as content:
                    archive.addfile(_header(member.name, member.size, manifest.made_at), content)
        file.flush()
        os.fsync(file.fileno())


def _header(name: str, size: int, made_at: float) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mtime, header.mode = size, int(made_at), 0o600
    return header


@contextmanager
def _database_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        if "full" in said:  # the copy's disk
            raise OSError(errno.ENOSPC, said) from error
        if "unable to open" in said or "readonly" in said:
            raise BackupError(f"{path} cannot be read. Run this as citebot's own user.") from error
        raise BackupError(
            f"{path} is damaged or in the way ({said}). Nothing was saved. Move it away, and save the rest."
        ) from error


@contextmanager
def map_file_errors(file: Path, *, disk: Path) -> Iterator[None]:
    """Turn what the file system says into sentences; `file` is the backup, `disk` what is being written."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str | Path) else file
        if error.errno in _FULL:
            raise BackupError(f"There is no room for {disk}. Free some, or use another disk.") from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise BackupError(f"{where} may not be read or written. Run this as citebot's own user.") from error
        raise BackupError(f"{where}: {error.strerror or error}. Put it right and try again.") from error
