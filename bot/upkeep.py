"""What `citebot sweep`, `backup` and `restore` do, and what `citebot status` tells of the data folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from bot import disk_use, records, retention
from bot.app import open_stock, places
from bot.backup import save
from bot.clock import Clock
from bot.disk_use import DiskUse
from bot.errors import SettingsError
from bot.freshness import Display
from bot.lookups import Outcome
from bot.manifest import Manifest
from bot.markdown import one_line
from bot.repository_states import RepositoryState
from bot.restore import restore
from bot.retention import Indexes, Retention, Swept
from bot.settings import Settings
from indexer.errors import IndexerError, RepositoryError
from indexer.folders import IndexFolder, remove_index
from indexer.models import IndexStatus

NO_TABLES = (
    "Which indexes are unused can only be told where citebot.toml lists the repositories in use, as [[repositories]]. "
    "Nothing was removed."
)


async def sweep(
    settings: Settings, repository: Path, display: Display, clock: Clock, *, unused: bool, as_json: bool
) -> Outcome:
    """Forget what is too old, drop what is not read any more, and with `unused` the indexes of no repository."""
    if unused and not settings.repositories:
        raise SettingsError(NO_TABLES)
    before = await asyncio.to_thread(disk_use.measured, settings.home, None)
    removed = await asyncio.to_thread(_removed, settings) if unused else []
    async with AsyncExitStack() as stack:
        indexes, problems = await _indexes(settings, repository, display, stack)
        kept = Retention(home=settings.home, days=settings.retention_days, clock=clock, indexes=indexes)
        swept = await kept.sweep()
    after = await asyncio.to_thread(disk_use.measured, settings.home, None)
    return _outcome(swept, [*problems, *swept.problems], removed, before.total - after.total, as_json=as_json)


async def _indexes(
    settings: Settings, repository: Path, display: Display, stack: AsyncExitStack
) -> tuple[Indexes | None, Sequence[str]]:
    """Open the indexes in use; outside of any repository there may be none."""
    try:
        stock = await stack.enter_async_context(open_stock(settings, repository, display))
    except IndexerError as error:
        return None, [str(error)] if settings.repositories else []
    return stock.library, []


def _removed(settings: Settings) -> Sequence[IndexFolder]:
    unused = _measured(settings).unused or ()
    for folder in unused:
        remove_index(settings.home, folder.name)
    return unused


def _outcome(
    swept: Swept, problems: Sequence[str], removed: Sequence[IndexFolder], freed: int, *, as_json: bool
) -> Outcome:
    note = "\n".join(problems)
    if as_json:
        told = {
            **retention.record(swept),
            "problems": list(problems),
            "removed_indexes": [each.name for each in removed],
            "freed_bytes": max(0, freed),
        }
        return Outcome(output=records.to_json(told), note=note, ok=not problems)
    lines = [f"Removed the index {each.name} ({disk_use.size(each.size)})." for each in removed]
    lines.append(f"{retention.sentence(swept)} {disk_use.size(max(0, freed))} of disk space is free again.")
    return Outcome(output="\n".join(lines), note=note, ok=not problems)


async def status(found: IndexStatus, settings: Settings, *, as_json: bool) -> Outcome:
    """Say what is indexed, and what the data folder takes."""
    use, note = await _use(settings)
    if as_json:
        record = {**records.status_record(found), "data": disk_use.record(use)}
        return Outcome(output=records.to_json(record), note=note)
    return Outcome(output="\n".join([records.status_lines(found), *_rows(use)]), note=note)


async def statuses(states: Sequence[RepositoryState], settings: Settings, *, as_json: bool) -> Outcome:
    """Say how each of several repositories is doing; a failure where one of them cannot be read."""
    use, note = await _use(settings)
    ok = all(state.state != "failed" for state in states)
    if as_json:
        record = {"repositories": [*map(records.state_record, states)], "data": disk_use.record(use)}
        return Outcome(output=records.to_json(record), note=note, ok=ok)
    return Outcome(output="\n\n".join([*map(records.state_lines, states), "\n".join(_rows(use))]), note=note, ok=ok)


async def _use(settings: Settings) -> tuple[DiskUse, str]:
    """Measure the data folder; where nobody knows which indexes are unused, a remark says so."""
    try:
        return await asyncio.to_thread(_measured, settings), ""
    except RepositoryError as error:
        use = await asyncio.to_thread(disk_use.measured, settings.home, None)
        return use, f"Which indexes are unused cannot be determined: {error}"


def _rows(use: DiskUse) -> Sequence[str]:
    return [f"{name:<12}{text}" for name, text in disk_use.lines(use)]


async def backup(home: Path, file: Path, clock: Clock, *, indexes: bool, force: bool, as_json: bool) -> Outcome:
    """Save a data folder in a file."""
    made = await asyncio.to_thread(save, home, file, now=clock.now(), indexes=indexes, force=force)
    return _told("Saved", made, file, as_json=as_json)


async def restored(home: Path, file: Path, *, force: bool, as_json: bool) -> Outcome:
    """Bring a data folder back from a file."""
    found = await asyncio.to_thread(restore, file, home, force=force)
    return _told("Restored", found, file, as_json=as_json)


def _told(done: str, manifest: Manifest, file: Path, *, as_json: bool) -> Outcome:
    made_at = datetime.fromtimestamp(manifest.made_at, UTC)
    count, files = manifest.repositories(), len(manifest.members)
    if as_json:
        record = {
            "file": os.fsencode(file).decode("utf-8", "backslashreplace"),
            "made_at": made_at.isoformat(timespec="seconds"),
            "files": files,
            "bytes": manifest.size,
            "indexes": count,
        }
        return Outcome(output=records.to_json(record))
    indexes = f"{count} {'index' if count == 1 else 'indexes'}" if manifest.indexes else "no indexes"
    return Outcome(
        output=f"{done} {files:,} file{'s' * (files != 1)} ({disk_use.size(manifest.size)}, {indexes}), "
        f"as of {made_at.astimezone():%Y-%m-%d %H:%M}, {'to' if done == 'Saved' else 'from'} {one_line(str(file))}."
    )


def _measured(settings: Settings) -> DiskUse:
    used = disk_use.used_folders(settings.home, places(settings)) if settings.repositories else None
    return disk_use.measured(settings.home, used)
