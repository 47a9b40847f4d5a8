"""Detects damaged files by digests recorded after their last change."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_ALGORITHM = "sha256"
_BLOCK = 2**20  # bytes
_MARK = b"citebot checksum\0"  # then the digest, at the end of a file that is written once


class Checksums:
    """Digests of files, kept in a separate file.

    They are dropped before a change and recorded again after the last one, so a process that dies
    in between leaves none.
    """

    def __init__(self, file: Path, list_files: Callable[[], Iterable[Path]]) -> None:
        self._file = file
        self._list_files = list_files

    def match(self) -> bool | None:
        """Whether the files match their digests; None without digests."""
        noted = self._read_record()
        if noted is None:
            return None
        if noted == self._compute_digests():
            return True
        # Another process may have begun to change them while they were read.
        return False if self._read_record() == noted else None

    def is_noted(self) -> bool:
        """Whether any digests are recorded for the files."""
        return self._file.exists()

    def drop(self) -> None:
        """Delete the digests, because the files are about to change."""
        self._file.unlink(missing_ok=True)

    def note(self) -> None:
        """Record the digests of the files."""
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(self._compute_digests()), encoding="utf-8")
        written.replace(self._file)

    def _read_record(self) -> object:
        try:
            return json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            return False

    def _compute_digests(self) -> dict[str, str]:
        digests = {}
        for path in sorted(self._list_files()):
            with path.open("rb") as file:
                name = path.relative_to(self._file.parent).as_posix()
                digests[name] = hashlib.file_digest(file, _ALGORITHM).hexdigest()
        return digests


def append_checksum(path: Path) -> None:
    """Append the digest of its content to a file that never changes again."""
    with path.open("r+b") as file:
        digest = hashlib.file_digest(file, _ALGORITHM).digest()
        file.write(_MARK + digest)


def is_whole(path: Path) -> bool:
    """Whether a file ends with the digest of its content."""
    with path.open("rb") as file:
        try:
            return _find_end(file) < file.seek(0, os.SEEK_END)
        except ValueError:
            return False


@contextmanager
def open_checked(path: Path) -> Iterator[BinaryIO]:
    """Open a file that ends with its digest and must be read to the end; ValueError if it is damaged.

    A file without a digest is from an earlier version, and is not checked.
    """
    with path.open("rb") as file:
        end = _find_end(file)
        yield file
        if file.tell() != end:
            raise ValueError(f"{path} does not end where it should")


def _find_end(file: BinaryIO) -> int:
    """Find the end of a file's content; ValueError if it does not match its digest."""
    size = file.seek(0, os.SEEK_END)
    end = max(0, size - len(_MARK) - hashlib.new(_ALGORITHM).digest_size)
    file.seek(end)
    mark, noted = file.read(len(_MARK)), file.read()
    file.seek(0)
    if mark != _MARK:
        return size

    digest, left = hashlib.new(_ALGORITHM), end
    while left and (data := file.read(min(left, _BLOCK))):
        digest.update(data)
        left -= len(data)
    file.seek(0)
    if digest.digest() != noted:
        raise ValueError("its content is not what was written")
    return end
