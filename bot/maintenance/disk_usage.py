"""Measures the disk usage of each part of the data folder, and finds indexes of no configured repository."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import list_copies
from bot.storage.database import INBOX_FILE
from indexer import REPOSITORIES_FOLDER, IndexFolder, find_index_folder, list_index_folders

CONVERSATIONS = "conversations.sqlite"
PROMPTS = "console_history"
REMOVAL = "citebot sweep --unused-indexes"


@dataclass(frozen=True, kw_only=True)
class DiskUsage:
    """Bytes by part, and the free space of the disk. `unused` counts unused indexes; None if they are unknown."""

    conversations: int
    messages: int
    prompts: int
    indexes: Sequence[IndexFolder]
    unused: Sequence[IndexFolder] | None
    free: int

    @property
    def total(self) -> int:
        """All parts together."""
        return self.conversations + self.messages + self.prompts + _sum(self.indexes)


def measure_disk_usage(home: Path, used: Collection[str] | None) -> DiskUsage:
    """Measure a data folder; `used` names the folders of used indexes, None if unknown."""
    indexes = list_index_folders(home)
    return DiskUsage(
        conversations=_measure_database(home / CONVERSATIONS),
        messages=_measure_database(home / INBOX_FILE),
        prompts=_measure_file(home / PROMPTS),
        indexes=indexes,
        unused=None if used is None else [folder for folder in indexes if folder.name not in used],
        free=shutil.disk_usage(next(folder for folder in (home, *home.parents) if folder.exists())).free,
    )


def list_used_folders(home: Path, repositories: Sequence[Path]) -> frozenset[str]:
    """Name the folders used by repositories: their indexes, and clones in `home`.

    Raises `RepositoryError` if one cannot be read, because its folder is then unknown.
    """
    clones = (path.name for path in repositories if path.parent == home / REPOSITORIES_FOLDER)
    return frozenset([*(find_index_folder(path) for path in repositories), *clones])


def usage_to_record(use: DiskUsage) -> dict[str, Any]:
    """Describe the usage as JSON."""
    listed = [{"folder": folder.name, "bytes": folder.size} for folder in use.indexes]
    unused = None if use.unused is None else [folder.name for folder in use.unused]
    return {
        "bytes": use.total,
        "conversations": use.conversations,
        "messages": use.messages,
        "prompts": use.prompts,
        "indexes": listed,
        "unused_indexes": unused,
        "free": use.free,
    }


def format_usage(use: DiskUsage) -> Sequence[tuple[str, str]]:
    """Write the usage as rows of a name and a text."""
    count = len(use.indexes)
    parts = [
        f"indexes {format_bytes(_sum(use.indexes))} ({count} {'repository' if count == 1 else 'repositories'})",
        f"conversations {format_bytes(use.conversations)}",
        f"messages {format_bytes(use.messages)}",
    ]
    rows = [("all data", f"{format_bytes(use.total)}: {', '.join(parts)}; {format_bytes(use.free)} free")]
    if use.unused:
        named = ", ".join(f"{folder.name} ({format_bytes(folder.size)})" for folder in use.unused)
        rows.append(("unused", f"{named}: of no repository in citebot.toml; `{REMOVAL}` removes them"))
    return rows


def format_bytes(count: int) -> str:
    """Write a number of bytes."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _sum(folders: Sequence[IndexFolder]) -> int:
    return sum(folder.size for folder in folders)


def _measure_database(path: Path) -> int:
    """Measure a database with SQLite's files, and its copies from before upgrades."""
    parts = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    return sum(_measure_file(part) for part in (*parts, *list_copies(path)))


def _measure_file(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
