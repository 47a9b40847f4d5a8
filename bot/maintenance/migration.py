"""Moves the messages and conversations of a data folder to Postgres, or back: all of them, or nothing."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent import (
    APPLICATION_NAME,
    ConversationCounts,
    PostgresTransaction,
    copy_conversations_to_postgres,
    copy_conversations_to_sqlite,
    prepare_postgres_conversations,
)
from bot.errors import MigrationError
from bot.maintenance.disk_usage import CONVERSATIONS
from bot.maintenance.table_copy import copy_to_postgres, copy_to_sqlite, list_tables
from bot.storage.data_lock import hold_exclusive_lock
from bot.storage.database import INBOX_FILE, open_database, open_transaction
from indexer import copy_database

Say = Callable[[str], None]

DRAFT = ".migrating"  # next to the files, so that moving is a rename
_STEP = 500  # conversations after which progress is told
_LEAVING_SECONDS = 2.0  # after which the server no longer lists a connection that was closed
_CONVERSATION_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "evidence")
_OTHERS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = ? AND pid <> pg_backend_pid()"""


@dataclass(frozen=True, kw_only=True, slots=True)
class MigrationReport:
    """The number of moved rows per table, and of moved conversations."""

    tables: Mapping[str, int] = field(default_factory=dict)
    conversations: ConversationCounts


async def move_to_postgres(home: Path, url: str, say: Say) -> MigrationReport:
    """Copy a data folder to an empty database; the folder stays as it is.

    Raises `MigrationError`, `BackupError` while a citebot uses the folder, or the errors of either database.
    """
    with _hold_draft(home) as draft:
        present = [name for name in (INBOX_FILE, CONVERSATIONS) if (home / name).exists()]
        if not present:
            raise MigrationError(f"There is nothing to move in {home}. CITEBOT_HOME names another data folder.")
        for name in present:  # the copies are brought to the newest layout, the files are not
            await asyncio.to_thread(_copy_file, home / name, draft / name)
        await prepare_postgres_conversations(url)
        async with (
            open_database(draft / INBOX_FILE) as source,
            open_transaction(url) as target,
        ):
            tables = await list_tables(source)
            await _take_alone(target, tables)
            counts = {}
            for table, columns in tables.items():
                if await target.rows(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608 - a table of ours
                    raise MigrationError(f"The database holds rows in {table} already. Name one that is empty.")
                counts[table] = await copy_to_postgres(source, target, table, columns)
                say(f"{table}: {counts[table]:,} rows")
            copied = await copy_conversations_to_postgres(draft / CONVERSATIONS, target, _report_steps(say))
    return MigrationReport(tables=counts, conversations=copied)


async def move_to_sqlite(url: str, home: Path, say: Say) -> MigrationReport:
    """Copy what a database holds to a data folder without messages and conversations; the database stays as it is.

    Raises `MigrationError`, `BackupError` while a citebot uses the folder, or what either database raises.
    """
    with _hold_draft(home) as draft:
        if present := [name for name in (INBOX_FILE, CONVERSATIONS) if (home / name).exists()]:
            raise MigrationError(f"{home} holds {present[0]} already. Move it away, or name another CITEBOT_HOME.")
        await prepare_postgres_conversations(url)
        async with open_transaction(url) as source:
            async with open_database(draft / INBOX_FILE) as target:
                tables = await list_tables(target)
                await _take_alone(source, tables)
                counts = {}
                for table, columns in tables.items():
                    counts[table] = await copy_to_sqlite(source, target, table, columns)
                    say(f"{table}: {counts[table]:,} rows")
            copied = await copy_conversations_to_sqlite(source, draft / CONVERSATIONS, _report_steps(say))
        if not any(counts.values()) and not copied.conversations:
            raise MigrationError("There is nothing to move in the database that DATABASE_URL names.")
        for name in (CONVERSATIONS, INBOX_FILE):  # closed, they have no log beside them
            (draft / name).rename(home / name)
    return MigrationReport(tables=counts, conversations=copied)


@contextmanager
def _hold_draft(home: Path) -> Iterator[Path]:
    """Lock a data folder for this process alone, with a folder for drafts in it."""
    with hold_exclusive_lock(home):
        draft = home / DRAFT
        shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed at it
        draft.mkdir(mode=0o700)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _copy_file(source: Path, target: Path) -> None:
    try:
        copy_database(source, target)
    except sqlite3.Error as error:
        raise MigrationError(f"{source} cannot be read ({error}). Nothing was changed.") from error


async def _take_alone(transaction: PostgresTransaction, tables: Mapping[str, object]) -> None:
    """Let nobody else write until the transaction ends; `MigrationError` if a citebot uses the database."""
    await transaction.write("SET LOCAL lock_timeout = '5s'")
    for _ in range(int(_LEAVING_SECONDS / 0.1)):
        await transaction.rows("SELECT pg_stat_clear_snapshot()")
        ((others,),) = await transaction.rows(_OTHERS, (APPLICATION_NAME,))
        if not others:
            await transaction.write(f"LOCK TABLE {', '.join([*tables, *_CONVERSATION_TABLES])} IN EXCLUSIVE MODE")
            return
        await asyncio.sleep(0.1)
    raise MigrationError("Another citebot is connected to the database. Stop every one that uses it, and try again.")


def _report_steps(say: Say) -> Callable[[int, int], None]:
    def report(done: int, total: int) -> None:
        if done % _STEP == 0 or done == total:
            say(f"conversations: {done:,} of {total:,}")

    return report
