"""Brings back what a backup holds: checked as a whole beside the data folder, then moved in place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bot import packed
from bot.backup import map_file_errors
from bot.disk_use import PROMPTS, format_bytes
from bot.errors import BackupError
from bot.manifest import DATABASES, BackupManifest, InvalidBackup
from bot.occupancy import LOCK, hold_exclusive_lock
from bot.packed import BackupArchive
from bot.restored_databases import check_databases
from indexer.folders import REPOSITORIES

DRAFT = ".restoring"  # on the disk of the data folder, so that moving is nothing but renaming
_SPARE = 16 * 2**20  # bytes that are to be left free


def restore_backup(file: Path, home: Path, *, force: bool) -> BackupManifest:
    """Restore a backup into a data folder; one that holds something is overwritten with `force` alone.

    Indexes stay where the backup was made without. Whatever goes wrong, the data folder is as it was. Raises
    `BackupError` with a sentence.
    """
    with _unfit(file), map_file_errors(file, disk=home), packed.open_archive(file) as backup, hold_exclusive_lock(home):
        draft = home / DRAFT
        _recover(home, draft)
        if not force and (there := _list_contents(home)):
            raise BackupError(f"{home} holds {there[0]} already. To replace what is there, add --force.")
        _check_room(backup.manifest, home)
        try:
            _install_backup(backup, home, draft)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return backup.manifest


@contextmanager
def _unfit(file: Path) -> Iterator[None]:
    """Make a sentence of what is wrong with a backup."""
    try:
        yield
    except InvalidBackup as error:
        raise BackupError(f"{file} {error}. Nothing was restored.") from error


def _install_backup(backup: BackupArchive, home: Path, draft: Path) -> None:
    new, old = draft / "new", draft / "old"
    new.mkdir(parents=True)
    old.mkdir()
    backup.unpack(new)
    check_databases(new)
    leaving = [home / name for name in _list_replaced(backup.manifest) if (home / name).exists()]
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


def _list_replaced(manifest: BackupManifest) -> Sequence[str]:
    """What gives way to a backup: a log beside a database would be taken for the log of the one that comes."""
    databases = [f"{name}{suffix}" for name in DATABASES for suffix in ("", "-wal", "-shm", "-journal")]
    return [*databases, PROMPTS, *([REPOSITORIES] if manifest.indexes else [])]


def _recover(home: Path, draft: Path) -> None:
    """Put back what a restore that was killed had moved away, and drop what it had unpacked."""
    old = draft / "old"
    for path in old.iterdir() if old.is_dir() else ():
        if not (home / path.name).exists():
            path.rename(home / path.name)
    shutil.rmtree(draft, ignore_errors=True)


def _list_contents(home: Path) -> Sequence[str]:
    return sorted(path.name for path in home.iterdir() if path.name not in {LOCK, DRAFT})


def _check_room(manifest: BackupManifest, home: Path) -> None:
    free = shutil.disk_usage(home).free
    if manifest.size + _SPARE > free:
        raise BackupError(
            f"The backup takes {format_bytes(manifest.size)}, and the disk of {home} has {format_bytes(free)} free. Make room first."
        )
