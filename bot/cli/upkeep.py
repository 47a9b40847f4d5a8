"""The commands that look after data: `sweep`, `backup`, `restore`, `migrate`, `status`, `feedback` and `questions`."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent import Database
from bot.adapters.terminal import output
from bot.adapters.terminal.output import CommandOutcome
from bot.app import locate_repositories, open_team_repositories
from bot.clock import Clock
from bot.errors import BotError, SettingsError
from bot.maintenance import disk_usage, retention
from bot.maintenance.backup import BackupManifest, restore_backup, write_backup
from bot.maintenance.disk_usage import DiskUsage
from bot.maintenance.retention import Retention, SweepReport
from bot.markdown.formatting import to_one_line
from bot.repositories.refresh import ProgressDisplay
from bot.repositories.status import RepositoryState
from bot.settings import Settings
from bot.storage.database import has_store, open_store
from bot.storage.turn_records import AskedQuestion, FeedbackEntry, TurnRecordStore
from indexer import IndexerError, IndexFolder, IndexStatus, RepositoryError, remove_index

NO_TABLES = (
    "Which indexes are unused is only known if citebot.toml lists the repositories in use, as [[repositories]]. "
    "Nothing was removed."
)

DAY = 86_400.0


async def sweep_data_folder(
    settings: Settings, chosen: Settings, display: ProgressDisplay, clock: Clock, *, unused: bool, as_json: bool
) -> CommandOutcome:
    """Delete expired and unused data, and with `unused` the indexes without a repository.

    `chosen` are the repositories whose indexes are swept; only all `settings` tell which are
    unused.
    """
    if unused and not settings.repositories:
        raise SettingsError(NO_TABLES)
    before = await asyncio.to_thread(disk_usage.measure_disk_usage, settings.home, None)
    removed = (await asyncio.to_thread(_measure_usage, settings)).unused or () if unused else ()
    for folder in removed:
        await asyncio.to_thread(remove_index, settings.home, folder.name, settings.chroma_url)
    async with AsyncExitStack() as stack:
        sweep_indexes: Callable[[], Awaitable[Sequence[str]]] | None = None
        problems: list[str] = []
        where = chosen.repo or Path.cwd()
        try:
            sweep_indexes = (
                await stack.enter_async_context(open_team_repositories(chosen, where, display))
            ).library.sweep
        except IndexerError as error:  # outside of any repository there may be none
            problems += [str(error)] if chosen.repositories else []
        kept = Retention(
            home=settings.home,
            url=settings.database_url,
            days=settings.retention_days,
            question_days=settings.keep_question_days,
            living_days=settings.living.days,
            clock=clock,
            sweep_indexes=sweep_indexes,
        )
        swept = await kept.sweep()
    after = await asyncio.to_thread(disk_usage.measure_disk_usage, settings.home, None)
    return _report_sweep(swept, [*problems, *swept.problems], removed, before.total - after.total, as_json=as_json)


def _report_sweep(
    swept: SweepReport, problems: Sequence[str], removed: Sequence[IndexFolder], freed: int, *, as_json: bool
) -> CommandOutcome:
    note = "\n".join(problems)
    if as_json:
        record = {
            **asdict(swept),
            "problems": list(problems),
            "removed_indexes": [folder.name for folder in removed],
            "freed_bytes": max(0, freed),
        }
        return CommandOutcome(output=output.to_json(record), note=note, ok=not problems)
    lines = [f"Removed the index {folder.name} ({disk_usage.format_bytes(folder.size)})." for folder in removed]
    lines.append(
        f"{retention.describe_sweep(swept)} {disk_usage.format_bytes(max(0, freed))} of disk space is free again."
    )
    return CommandOutcome(output="\n".join(lines), note=note, ok=not problems)


async def show_status(found: IndexStatus, settings: Settings, *, as_json: bool) -> CommandOutcome:
    """Report the indexed repositories, and the disk space of the data folder."""
    use, note = await _measure(settings)
    if as_json:
        record = {**output.status_to_record(found), "data": disk_usage.usage_to_record(use)}
        return CommandOutcome(output=output.to_json(record), note=note)
    return CommandOutcome(output="\n".join([output.format_status(found), *_format_rows(use)]), note=note)


async def show_all_statuses(states: Sequence[RepositoryState], settings: Settings, *, as_json: bool) -> CommandOutcome:
    """Report the state of several repositories; fails if one of them cannot be read."""
    use, note = await _measure(settings)
    ok = all(state.state != "failed" for state in states)
    if as_json:
        record = {"repositories": [*map(output.state_to_record, states)], "data": disk_usage.usage_to_record(use)}
        return CommandOutcome(output=output.to_json(record), note=note, ok=ok)
    return CommandOutcome(
        output="\n\n".join([*map(output.format_state, states), "\n".join(_format_rows(use))]), note=note, ok=ok
    )


async def _measure(settings: Settings) -> tuple[DiskUsage, str]:
    """Measure the data folder; the second value is a remark if the unused indexes cannot be determined."""
    try:
        return await asyncio.to_thread(_measure_usage, settings), ""
    except RepositoryError as error:
        use = await asyncio.to_thread(disk_usage.measure_disk_usage, settings.home, None)
        return use, f"Which indexes are unused cannot be determined: {error}"


def _format_rows(use: DiskUsage) -> Sequence[str]:
    return [f"{name:<12}{text}" for name, text in disk_usage.format_usage(use)]


async def save_data_folder(
    home: Path, file: Path, clock: Clock, *, indexes: bool, force: bool, as_json: bool
) -> CommandOutcome:
    """Save a data folder in a file."""
    made = await asyncio.to_thread(write_backup, home, file, now=clock.now(), indexes=indexes, force=force)
    return _report_backup("Saved", made, file, as_json=as_json)


async def restore_data_folder(home: Path, file: Path, *, force: bool, as_json: bool) -> CommandOutcome:
    """Restore a data folder from a file."""
    found = await asyncio.to_thread(restore_backup, file, home, force=force)
    return _report_backup("Restored", found, file, as_json=as_json)


def _report_backup(verb: str, manifest: BackupManifest, file: Path, *, as_json: bool) -> CommandOutcome:
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
        return CommandOutcome(output=output.to_json(record))
    indexes = f"{count} {'index' if count == 1 else 'indexes'}" if manifest.indexes else "no indexes"
    return CommandOutcome(
        output=f"{verb} {files:,} file{'s' * (files != 1)} ({disk_usage.format_bytes(manifest.size)}, {indexes}), "
        f"as of {made_at.astimezone():%Y-%m-%d %H:%M}, {'to' if verb == 'Saved' else 'from'} {to_one_line(str(file))}."
    )


def _measure_usage(settings: Settings) -> DiskUsage:
    used = disk_usage.list_used_folders(settings.home, locate_repositories(settings)) if settings.repositories else None
    return disk_usage.measure_disk_usage(settings.home, used)


@asynccontextmanager
async def open_existing_store(settings: Settings) -> AsyncGenerator[Database | None]:
    """Open the database if it exists; None if nobody has asked anything yet."""
    if not await asyncio.to_thread(has_store, settings.home, settings.database_url):
        yield None
        return
    async with open_store(settings.home, settings.database_url) as database:
        yield database


@asynccontextmanager
async def open_records(settings: Settings, clock: Clock) -> AsyncGenerator[TurnRecordStore | None]:
    """Open the records of turns; None if nobody has asked anything yet."""
    async with open_existing_store(settings) as database:
        yield TurnRecordStore(database, clock) if database is not None else None


def open_questions(settings: Settings, clock: Clock) -> AbstractAsyncContextManager[TurnRecordStore | None]:
    """Open the kept questions; `NotAllowed` unless this account may read them."""
    check_reader(settings)
    return open_records(settings, clock)


def check_reader(settings: Settings) -> None:
    """Raise `NotAllowed` unless this account may read questions."""
    settings.access.check_questions(pwd.getpwuid(os.geteuid()).pw_name)


async def export_feedback(settings: Settings, clock: Clock, *, days: int | None, as_json: bool) -> CommandOutcome:
    """List the ratings of the last days, or all, oldest first.

    The raters are not named. The questions are not shown.
    """
    since = clock.now() - days * DAY if days is not None else 0.0
    found: Sequence[FeedbackEntry] = ()
    async with open_records(settings, clock) as records:
        if records is not None:
            found = await records.feedback(since=since)
    note = "" if found else "Nobody has rated an answer" + (f" in the last {days} days." if days else " yet.")
    rows = [feedback_to_record(entry) for entry in found] if as_json else [format_feedback(entry) for entry in found]
    text = output.to_json({"feedback": rows}) if as_json else "\n".join(map(str, rows))
    return CommandOutcome(output=text, note=note, ok=bool(found))


async def export_questions(
    settings: Settings, clock: Clock, folder: Path, *, days: int | None, as_json: bool
) -> CommandOutcome:
    """Write the kept questions as example lines, in a file per lookup, below their ratings."""
    since = clock.now() - days * DAY if days is not None else 0.0
    found: Sequence[AskedQuestion] = ()
    async with open_questions(settings, clock) as records:
        if records is not None:
            found = await records.list_questions(since=since)
    if not found:
        off = "" if settings.keep_question_days else " `keep_question_days` is 0, so none are kept."
        return CommandOutcome(output="", note=f"There are no questions to export.{off}", ok=False)
    files = await asyncio.to_thread(_write_questions, folder, found)
    if as_json:
        return CommandOutcome(output=output.to_json({"folder": str(folder), "questions": len(found), "files": files}))
    return CommandOutcome(output=f"Wrote {len(found):,} questions to {len(files)} files in {to_one_line(str(folder))}.")


def _write_questions(folder: Path, found: Sequence[AskedQuestion]) -> Sequence[str]:
    lines: dict[str, dict[str, list[str]]] = {}
    for one in found:
        rated = f"rated {one.opinion}" if one.opinion else "not rated"
        lines.setdefault(f"{one.lookup or 'none'}.txt", {}).setdefault(rated, []).append(one.text)
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise BotError(f"{folder} already exists. Name a new folder.") from error
    for name, by_rating in lines.items():
        rows = [row for rated, own in by_rating.items() for row in (f"# {rated}", *own)]
        (folder / name).write_text("\n".join([*rows, ""]), encoding="utf-8")
    return sorted(lines)


def feedback_to_record(feedback: FeedbackEntry) -> dict[str, Any]:
    """Describe a rating as JSON; of a forgotten turn, only the rating is left."""
    turn = feedback.record
    return {
        "rating": feedback.opinion,
        "at": datetime.fromtimestamp(feedback.at, UTC).isoformat(timespec="seconds"),
        "turn": feedback.run_id,
        "repository": turn.repository if turn else None,
        "commit": turn.commit if turn else None,
        "route": turn.route if turn else None,
        "model": turn.model if turn else None,
        "seconds": round(turn.seconds, 3) if turn else None,
        "searched": list(turn.searched) if turn else None,
        "files": list(turn.files) if turn else None,
    }


def format_feedback(feedback: FeedbackEntry) -> str:
    """Write a rating on one line: time, rating, subject, and how the answer was found."""
    when = f"{datetime.fromtimestamp(feedback.at).astimezone():%Y-%m-%d %H:%M}"
    turn = feedback.record
    if turn is None:
        return f"{when}  {feedback.opinion:<4}  (forgotten)"
    where = f"{to_one_line(turn.repository) or 'no repository'}{f' at {turn.commit[:7]}' if turn.commit else ''}"
    return f"{when}  {feedback.opinion:<4}  {where}  {turn.route}  {to_one_line(turn.model or 'no model')}"


async def migrate_data_folder(
    settings: Settings, target: str, say: Callable[[str], None], *, as_json: bool
) -> CommandOutcome:
    """Move the messages and conversations of a data folder to `postgres`, or from there to `sqlite`."""
    # Importing langgraph takes a second; nothing else here needs it.
    from bot.maintenance.migration import move_to_postgres, move_to_sqlite

    if settings.database_url is None:
        raise SettingsError(
            "Set DATABASE_URL to the database to move to, or from: postgresql://USER:PASSWORD@HOST:5432/NAME."
        )
    url = settings.database_url.get_secret_value()
    if target == "postgres":
        moved = await move_to_postgres(settings.home, url, say)
        what_next = f"{settings.home} was left as it is; citebot uses the database as long as DATABASE_URL is set."
    else:
        moved = await move_to_sqlite(url, settings.home, say)
        what_next = f"The database was left as it is; without DATABASE_URL, citebot uses {settings.home}."
    copied = moved.conversations
    if as_json:
        return CommandOutcome(output=output.to_json({"tables": dict(moved.tables), **asdict(copied)}))
    summary = f"Moved {sum(moved.tables.values()):,} rows of messages and {copied.conversations:,} conversations, "
    summary += "and compared them."
    return CommandOutcome(output=f"{summary} {what_next}")
