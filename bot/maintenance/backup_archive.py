"""The file of a backup: its list of contents, and reading a file that may hold anything."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from bot.maintenance.disk_usage import CONVERSATIONS, PROMPTS
from bot.storage.database import INBOX_FILE
from indexer import REPOSITORIES_FOLDER

_LARGEST_LIST = 16 * 2**20  # bytes; some hundred thousand files
_SLACK = 64 * 2**10  # bytes: the archive's end, and what is read ahead
_HEADERS = 2_048  # bytes of a member besides its content: headers and padding

FORM = 1  # raise it when a backup of this version cannot be restored by earlier ones
NAME = "citebot-backup.json"
DATABASES = (CONVERSATIONS, INBOX_FILE)

# Only these are saved and restored: no path leads out of the folder, and no file is executable.
_MEMBER = re.compile(
    rf"{re.escape(CONVERSATIONS)}|{re.escape(INBOX_FILE)}|{PROMPTS}"
    rf"|{REPOSITORIES_FOLDER}/[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,99}}/(catalog\.sqlite|generations/[0-9]{{1,18}}/\w{{1,99}}\.(npy|json))",
    re.ASCII,
)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class InvalidBackup(Exception):
    """A backup cannot be restored; the text continues a sentence that begins with the name of the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupMember:
    """A file of a backup: its path in the data folder, its bytes, and their sha256 in hexadecimal."""

    name: str
    size: int
    sha256: str

    @classmethod
    def read(cls, path: Path, folder: Path) -> Self:
        """Describe a file below a folder."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(name=path.relative_to(folder).as_posix(), size=path.stat().st_size, sha256=digest)


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupManifest:
    """The contents of a backup. `made_at` is in seconds since the epoch; without `indexes` those were left out."""

    made_at: float
    indexes: bool
    members: Sequence[BackupMember]

    @property
    def size(self) -> int:
        """The bytes of all members."""
        return sum(member.size for member in self.members)

    def repositories(self) -> int:
        """The number of indexes."""
        return len({member.name.split("/")[1] for member in self.members if "/" in member.name})

    def to_bytes(self) -> bytes:
        """Write it as JSON."""
        return json.dumps({"form": FORM, **asdict(self)}, indent=1).encode()


def read_manifest(data: bytes) -> BackupManifest:
    """Read and check a manifest; `InvalidBackup` says what is wrong with it."""
    try:
        record = json.loads(data)
        form = record["form"]
        if form != FORM:
            raise InvalidBackup(f"was made by another version of citebot (form {form!r:.20}, this one reads {FORM})")
        members = [_read_member(entry) for entry in record["members"]]
        made_at, indexes = float(record["made_at"]), bool(record["indexes"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise InvalidBackup("has a list of contents that cannot be read") from error
    if len({member.name for member in members}) < len(members):
        raise InvalidBackup("lists a file twice")
    return BackupManifest(made_at=made_at, indexes=indexes, members=members)


def _read_member(entry: dict[str, Any]) -> BackupMember:
    name, size, digest = entry["name"], entry["size"], entry["sha256"]
    if not isinstance(name, str) or not _MEMBER.fullmatch(name):
        raise InvalidBackup(f"lists {name!r:.80}, which citebot never saves")
    if type(size) is not int or size < 0 or not _DIGEST.fullmatch(digest):
        raise InvalidBackup(f"lists {name} with a size or a digest that cannot be right")
    return BackupMember(name=name, size=size, sha256=digest)


@contextmanager
def open_archive(file: Path) -> Iterator[BackupArchive]:
    """Open a backup and read its list of contents; raises `InvalidBackup`, which says what is wrong with the file."""
    try:
        with gzip.open(file) as stream:
            source = _Bounded(stream)
            with tarfile.open(fileobj=source, mode="r|") as archive:
                yield BackupArchive(archive, source)
    except (gzip.BadGzipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise InvalidBackup("is not a backup of citebot, or is damaged") from error


class BackupArchive:
    """An opened backup; `manifest` is what it declares."""

    def __init__(self, archive: tarfile.TarFile, source: _Bounded) -> None:
        first = archive.next()
        content = archive.extractfile(first) if first and first.name == NAME and first.isreg() else None
        if first is None or content is None or first.size > _LARGEST_LIST:
            raise InvalidBackup("is not a backup of citebot")
        self.manifest = read_manifest(content.read())
        self._archive = archive
        source.allowance += self.manifest.size + _HEADERS * len(self.manifest.members)

    def unpack(self, folder: Path) -> None:
        """Write all files below a folder that is empty; each is checked against the list."""
        missing = {member.name: member for member in self.manifest.members}
        for header in self._archive:
            if header.name == NAME and header.offset == 0:
                continue
            member = missing.pop(header.name, None)
            if member is None:
                raise InvalidBackup(f"holds {header.name!r:.80}, which its list of contents does not")
            self._unpack_member(header, member, folder)
        if missing:
            raise InvalidBackup(f"is not whole: {next(iter(missing))} is missing")

    def _unpack_member(self, header: tarfile.TarInfo, member: BackupMember, folder: Path) -> None:
        """Write a file for its owner alone. Its name is from the list, so that it leads out of no folder."""
        content = self._archive.extractfile(header) if header.isreg() and not header.issparse() else None
        if content is None or header.size != member.size:
            raise InvalidBackup(f"holds {member.name} as something else than it declares")
        target = folder / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(mode=0o600, exist_ok=False)
        with target.open("wb") as file:
            shutil.copyfileobj(content, file)
        if BackupMember.read(target, folder) != member:
            raise InvalidBackup(f"is damaged: {member.name} is not what was saved")


class _Bounded(io.RawIOBase):
    """The content of a compressed file, up to an allowance; more than that is not read but an error."""

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
