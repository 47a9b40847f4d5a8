"""Reads a backup from a file that may be anything: plain files alone, and no byte beyond what is declared."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bot.manifest import NAME, BackupManifest, BackupMember, InvalidBackup, read_manifest

_LARGEST_LIST = 16 * 2**20  # bytes; some hundred thousand files
_SLACK = 64 * 2**10  # bytes: the archive's end, and what is read ahead
_HEADERS = 2_048  # bytes of a member beside its content: headers, and what fills up its last block
_CHUNK = 2**20


class _Bounded(io.RawIOBase):
    """The content of a compressed file, up to an allowance; more is an error and not read."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.allowance = _LARGEST_LIST + _SLACK

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what fits; `InvalidBackup` beyond the allowance."""
        data = self._file.read(len(buffer))
        self.allowance -= len(data)
        if self.allowance < 0:
            raise InvalidBackup("holds more than it declares")
        buffer[: len(data)] = data
        return len(data)


class BackupArchive:
    """An opened backup; `manifest` is what it declares."""

    def __init__(self, archive: tarfile.TarFile, source: _Bounded) -> None:
        self._archive = archive
        self.manifest = self._read_manifest()
        source.allowance += self.manifest.size + _HEADERS * len(self.manifest.members)

    def _read_manifest(self) -> BackupManifest:
        first = self._archive.next()
        content = self._archive.extractfile(first) if first and first.name == NAME and first.isreg() else None
        if first is None or content is None or first.size > _LARGEST_LIST:
            raise InvalidBackup("is no backup of citebot")
        return read_manifest(content.read())

    def unpack(self, folder: Path) -> None:
        """Write all files below a folder that is empty; each is checked against the list."""
        missing = {member.name: member for member in self.manifest.members}
        for header in self._archive:
            if header.name == NAME and header.offset == 0:
                continue
            member = missing.pop(header.name, None)
            if member is None:
                raise InvalidBackup(f"holds {header.name!r:.80}, which its list of contents does not")
            self._unpack_one(header, member, folder)
        if missing:
            raise InvalidBackup(f"is not whole: {next(iter(missing))} is missing")

    def _unpack_one(self, header: tarfile.TarInfo, member: BackupMember, folder: Path) -> None:
        if hasattr(tarfile, "data_filter"):  # which the first releases of Python 3.11 lack; the list rules as much out
            tarfile.data_filter(header, str(folder))
        content = self._archive.extractfile(header) if header.isreg() and not header.issparse() else None
        if content is None or header.size != member.size:
            raise InvalidBackup(f"holds {member.name} as something else than it declares")
        target = folder / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if _write_file(content, target) != member.sha256:
            raise InvalidBackup(f"is damaged: {member.name} is not what was saved")


def _write_file(content: IO[bytes], target: Path) -> str:
    """Write a file for its owner alone, and return its digest."""
    digest = hashlib.sha256()
    target.touch(mode=0o600, exist_ok=False)
    with target.open("wb") as file:
        while data := content.read(_CHUNK):
            digest.update(data)
            file.write(data)
    return digest.hexdigest()


@contextmanager
def open_archive(file: Path) -> Iterator[BackupArchive]:
    """Open a backup and read its list of contents; `InvalidBackup` says what is wrong with the file, while it is open."""
    try:
        with gzip.open(file) as stream:
            source = _Bounded(stream)
            with tarfile.open(fileobj=source, mode="r|") as archive:
                yield BackupArchive(archive, source)
    except (gzip.BadGzipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise InvalidBackup("is no backup of citebot, or is damaged") from error
