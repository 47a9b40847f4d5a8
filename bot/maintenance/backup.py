"""Saves the data folder in one file while others use it, and restores it as a whole or not at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from agent import Schema, create_checkpoint_tables, load_conversation_schema, run_statement
from bot.errors import BackupError
from bot.maintenance.disk_usage import CONVERSATIONS, PROMPTS, format_bytes
from bot.storage.data_folder_access import LOCK, hold_exclusive_lock, hold_shared_lock
from bot.storage.database import INBOX_FILE, load_message_schema
from indexer import CATALOG_VERSION, REPOSITORIES_FOLDER, copy_database, copy_index, create_catalog_tables

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
    """Read and check a manifest; `InvalidBackup` describes its problem."""
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
    """Open a backup and read its list of contents; `InvalidBackup` describes its problem."""
    try:
        with gzip.open(file) as stream:
            source = _Bounded(stream)
            with tarfile.open(fileobj=source, mode="r|") as archive:
                yield BackupArchive(archive, source)
    except (gzip.BadGzipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise InvalidBackup("is not a backup of citebot, or is damaged") from error


class BackupArchive:
    """An opened backup, with its `manifest`."""

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
        """Write a file readable only by its owner. Its name is from the list, so it leads out of no folder."""
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
    """The content of a compressed file, up to an allowance; more is an error."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.allowance = _LARGEST_LIST + _SLACK

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as much as fits; `InvalidBackup` beyond the allowance."""
        data = self._file.read(len(buffer))
        self.allowance -= len(data)
        if self.allowance < 0:
            raise InvalidBackup("holds more than it declares")
        buffer[: len(data)] = data
        return len(data)


_MAX_OBJECTS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """The known versions of a database, and its permitted tables and indexes with their SQL."""

    versions: Collection[int]
    objects: Collection[tuple[str, str, str]]

    @classmethod
    def read(cls, schema: Schema, beside: Callable[[sqlite3.Connection], None] | None = None) -> _Layout:
        """Run a schema statement by statement, as any state in between may exist; `beside` it are others."""
        with closing(sqlite3.connect(":memory:")) as db:
            if beside is not None:
                beside(db)
            objects = set(_read_objects(db))
            for statement in schema.list_statements():
                run_statement(db, statement)
                objects |= set(_read_objects(db))
        return cls(versions=range(schema.oldest, schema.newest + 1), objects=objects)

    @classmethod
    def read_catalog(cls) -> _Layout:
        """Create the layout of a catalog."""
        with closing(sqlite3.connect(":memory:")) as db:
            create_catalog_tables(db)
            return cls(versions=range(1, CATALOG_VERSION + 1), objects=_read_objects(db))


def check_databases(folder: Path) -> None:
    """Check every database of an unpacked backup; raises `InvalidBackup` for the first unusable one."""
    layouts = {
        CONVERSATIONS: _Layout.read(load_conversation_schema(), create_checkpoint_tables),
        INBOX_FILE: _Layout.read(load_message_schema()),
        f"{REPOSITORIES_FOLDER}/*/catalog.sqlite": _Layout.read_catalog(),
    }
    for pattern, layout in layouts.items():
        for path in sorted(folder.glob(pattern)):
            _check_database(path, path.relative_to(folder).as_posix(), layout)


def _check_database(path: Path, name: str, layout: _Layout) -> None:
    """Reject anything that would run when the database is used, such as a trigger, then check for damage."""
    try:
        # Read as a mere file: what is next to it is no part of it, and nothing is written.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA cell_size_check = ON")
            for kind, what, _ in sorted(set(_read_objects(db)) - set(layout.objects)):
                raise InvalidBackup(f"holds {name} with the {kind} {what!r:.80}, which citebot never makes so")
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in layout.versions:
                raise InvalidBackup(f"holds {name} of another version of citebot (form {version})")
            (pages,), (size,) = db.execute("PRAGMA page_count").fetchone(), db.execute("PRAGMA page_size").fetchone()
            (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok" or pages * size != path.stat().st_size:
                raise InvalidBackup(f"holds {name}, which is damaged")
    except sqlite3.Error as error:
        raise InvalidBackup(f"holds {name}, which is damaged or no database of citebot ({error})") from error


def _read_objects(db: sqlite3.Connection) -> Collection[tuple[str, str, str]]:
    """List tables, indexes and everything else with its own SQL, in one line each."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchmany(_MAX_OBJECTS)
    return [(str(kind), str(name), " ".join(str(sql).split())) for kind, name, sql in rows]


_QUICK = 1  # of gzip's levels: half the size at a tenth of the time
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

DRAFT = ".restoring"  # on the disk of the data folder, so that moving is nothing but renaming
_SPARE = 16 * 2**20  # bytes that are to be left free


def write_backup(home: Path, file: Path, *, now: float, indexes: bool, force: bool) -> BackupManifest:
    """Save a data folder as a file that only its owner can read; the file is complete, or does not exist.

    Everything is first copied next to the file. An existing file is replaced only with `force`. Raises `BackupError` or
    `StorageError`, each with a sentence.
    """
    if file.is_dir():
        raise BackupError(f"{file} is a folder. Name a file in it.")
    if not file.absolute().parent.is_dir():
        raise BackupError(f"The folder {file.absolute().parent} does not exist. Make it, or give another name.")
    if file.exists() and not force:
        raise BackupError(f"{file} already exists. Give another name, or replace it with --force.")
    with (
        _map_file_errors(file, disk=file),
        tempfile.TemporaryDirectory(prefix=".citebot-", dir=file.absolute().parent) as draft,
    ):
        copies, packed = Path(draft, "copies"), Path(draft, "packed")
        copies.mkdir()
        if home.is_dir():
            with hold_shared_lock(home):
                for name in DATABASES:
                    if (home / name).exists():
                        with _map_database_errors(home / name):
                            copy_database(home / name, copies / name)
                if (home / PROMPTS).exists():
                    shutil.copyfile(home / PROMPTS, copies / PROMPTS)
                for catalog in sorted((home / REPOSITORIES_FOLDER).glob("*/catalog.sqlite")) if indexes else ():
                    copy_index(catalog.parent, copies / REPOSITORIES_FOLDER / catalog.parent.name)
        members = [BackupMember.read(path, copies) for path in sorted(copies.rglob("*")) if path.is_file()]
        manifest = BackupManifest(made_at=now, indexes=indexes, members=members)
        if not members:
            raise BackupError(f"There is nothing to save in {home}. CITEBOT_HOME names another data folder.")
        _pack(copies, manifest, packed)
        packed.replace(file)
    return manifest


def _pack(copies: Path, manifest: BackupManifest, packed: Path) -> None:
    """Write the archive, with its list of contents first for the reader."""
    packed.touch(mode=0o600)
    with packed.open("wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_QUICK) as archive:
            listed = manifest.to_bytes()
            archive.addfile(_make_header(NAME, len(listed), manifest.made_at), io.BytesIO(listed))
            for member in manifest.members:
                with (copies / member.name).open("rb") as content:
                    archive.addfile(_make_header(member.name, member.size, manifest.made_at), content)
        file.flush()
        os.fsync(file.fileno())


def _make_header(name: str, size: int, made_at: float) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mtime, header.mode = size, int(made_at), 0o600
    return header


@contextmanager
def _map_database_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        reason = str(error)
        if "full" in reason:  # the copy's disk
            raise OSError(errno.ENOSPC, reason) from error
        if "unable to open" in reason or "readonly" in reason:
            raise BackupError(f"{path} cannot be read. Run this as citebot's own user.") from error
        raise BackupError(
            f"{path} is damaged or in the way ({reason}). Nothing was saved. Move it away, and save the rest."
        ) from error


@contextmanager
def _map_file_errors(file: Path, *, disk: Path) -> Iterator[None]:
    """Explain errors of the file system in a sentence; `file` is the backup, `disk` the target."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str | Path) else file
        if error.errno in _FULL:
            raise BackupError(f"The disk is full: {disk}. Free some space, or use another disk.") from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise BackupError(f"{where} may not be read or written. Run this as citebot's own user.") from error
        raise BackupError(f"{where}: {error.strerror or error}. Fix that and try again.") from error


def restore_backup(file: Path, home: Path, *, force: bool) -> BackupManifest:
    """Restore a backup into a data folder; a folder with data is overwritten only with `force`.

    Existing indexes stay if the backup has none. After any failure, the data folder is unchanged. Raises `BackupError`
    with a sentence.
    """
    draft = home / DRAFT
    try:
        with _map_file_errors(file, disk=home), open_archive(file) as backup, hold_exclusive_lock(home):
            _put_back(home, draft)
            if not force and (present := sorted({path.name for path in home.iterdir()} - {LOCK, DRAFT})):
                raise BackupError(f"{home} holds {present[0]} already. To replace what is there, add --force.")
            _check_room(backup.manifest, home)
            try:
                _install(backup, home, draft)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
            return backup.manifest
    except InvalidBackup as error:
        raise BackupError(f"{file} {error}. Nothing was restored.") from error


def _put_back(home: Path, draft: Path) -> None:
    """Undo a killed restore: put the moved data back, and delete the unpacked files."""
    old = draft / "old"
    for path in old.iterdir() if old.is_dir() else ():
        if not (home / path.name).exists():
            path.rename(home / path.name)
    shutil.rmtree(draft, ignore_errors=True)


def _check_room(manifest: BackupManifest, home: Path) -> None:
    free = shutil.disk_usage(home).free
    if manifest.size + _SPARE > free:
        raise BackupError(
            f"The backup takes {format_bytes(manifest.size)}, and the disk of {home} has {format_bytes(free)} free. "
            "Make room first."
        )


def _install(backup: BackupArchive, home: Path, draft: Path) -> None:
    """Unpack and check everything before replacing the existing data."""
    new, old = draft / "new", draft / "old"
    new.mkdir(parents=True)
    old.mkdir()
    backup.unpack(new)
    check_databases(new)
    # SQLite would apply a leftover log to the restored database.
    names = [f"{name}{suffix}" for name in DATABASES for suffix in ("", "-wal", "-shm", "-journal")]
    names += [PROMPTS, *([REPOSITORIES_FOLDER] if backup.manifest.indexes else [])]
    leaving = [home / name for name in names if (home / name).exists()]
    _move([(path, old / path.name) for path in leaving] + [(path, home / path.name) for path in new.iterdir()])


def _move(moves: Sequence[tuple[Path, Path]]) -> None:
    """Rename everything, or nothing."""
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            target.rename(source)
        raise
