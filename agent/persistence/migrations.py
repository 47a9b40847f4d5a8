"""Upgrades a database to this version's layout: numbered SQL files, in one transaction."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agent.errors import SchemaError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_POSTGRES_LOCK = 0x63697465_626F74  # "citebot": anyone who lays tables out waits for this
_LAYOUTS = """CREATE TABLE IF NOT EXISTS citebot_layouts (
    name TEXT PRIMARY KEY, layout INTEGER NOT NULL, changed_at TIMESTAMPTZ NOT NULL)"""
_WAIT_SECONDS = 60.0  # for another process that is at it: a large database takes some seconds to copy
_COPY = ".layout-"  # in the name of a copy, before the number of its layout
_ADDITION = re.compile(r"\AALTER TABLE (\w+) ADD COLUMN (IF NOT EXISTS )(\w+)")
# Errors of the disk or the file, which have a sentence where the database is opened.
_DISK_ERRORS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Schema:
    """The layout of a database: the SQL of each step, under the resulting layout's number.

    `name` is the database's name for people. The first step creates a database, or upgrades the
    previous layout.
    """

    name: str
    steps: Mapping[int, str]

    @classmethod
    def load(cls, name: str, package: str, engine: str = "sqlite") -> Schema:
        """Read the steps from the files of a package, such as `schema/sqlite/0002_messages.sql`."""
        listed = files(package).joinpath("schema", engine).iterdir()
        found = {int(file.name.partition("_")[0]): file for file in listed if file.name.endswith(".sql")}
        return cls(name=name, steps={number: found[number].read_text(encoding="utf-8") for number in sorted(found)})

    @property
    def oldest(self) -> int:
        """The first layout that can be migrated."""
        return min(self.steps) - 1

    @property
    def newest(self) -> int:
        """The layout of this version."""
        return max(self.steps)

    def list_statements(self, *, since: int = 0) -> Sequence[str]:
        """Return the statements from a given layout to the newest."""
        return [
            statement for number, sql in self.steps.items() if number > since for statement in _split_statements(sql)
        ]


def migrate_database(path: Path, schema: Schema, *, wait_seconds: float = _WAIT_SECONDS) -> None:
    """Migrate a database to the newest layout, or create it; existing data is copied first.

    After any failure, the database is unchanged. Processes that start at the same time do it one
    after the other. Raises `SchemaError`, or `sqlite3.Error` for problems of the file or its disk.
    """
    with closing(sqlite3.connect(path, timeout=wait_seconds, isolation_level=None)) as db:
        if _read_layout(db, path, schema) == schema.newest:
            return
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file; or it never shrinks
        db.execute("BEGIN IMMEDIATE")  # from here on nobody else writes, so the copy lacks nothing
        try:
            layout = _read_layout(db, path, schema)
            if layout < schema.newest:  # else another process was faster
                if layout:
                    _keep_copy(path, layout, schema)
                _change_layout(db, path, schema, layout)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk has ended it already
                db.execute("ROLLBACK")
            raise


async def migrate_postgres(connection: AsyncConnection[Any], schema: Schema) -> None:
    """Bring the tables of a schema to the newest layout, or make them; a database may have several schemas.

    After any failure, the tables are unchanged. Processes that start at the same time do it one
    after the other, even behind a transaction pooler. No copy is kept: Postgres has its own tools
    for that. Raises `SchemaError`, or `psycopg.Error`.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_POSTGRES_LOCK,))
        await connection.execute(_LAYOUTS)
        cursor = await connection.execute("SELECT layout FROM citebot_layouts WHERE name = %s", (schema.name,))
        layout = (await cursor.fetchone() or (schema.oldest,))[0]
        if not schema.oldest <= layout <= schema.newest:
            raise SchemaError(
                f"The {schema.name} tables in Postgres were made by another version of citebot (layout {layout}; this "
                f"one takes {schema.oldest} to {schema.newest}). Use that version, or another database."
            )
        for statement in schema.list_statements(since=layout):
            await connection.execute(cast("Any", statement))
        await connection.execute(
            "INSERT INTO citebot_layouts (name, layout, changed_at) VALUES (%s, %s, clock_timestamp()) "
            "ON CONFLICT (name) DO UPDATE SET layout = excluded.layout, changed_at = excluded.changed_at "
            "WHERE citebot_layouts.layout <> excluded.layout",
            (schema.name, schema.newest),
        )


def run_statement(db: sqlite3.Connection, statement: str) -> None:
    """Run a statement of a schema; emulates `ADD COLUMN IF NOT EXISTS`, which SQLite lacks."""
    if addition := _ADDITION.match(statement):
        table, _, column = addition.groups()
        if db.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table, column)).fetchone():
            return
        statement = statement[: addition.start(2)] + statement[addition.end(2) :]
    db.execute(statement)


def list_copies(path: Path) -> Sequence[Path]:
    """Return the kept copies of a database, the newest layout last."""
    found = [(file.name.rpartition(_COPY)[2], file) for file in path.parent.glob(f"{path.name}{_COPY}*")]
    return [file for _, file in sorted((int(number), file) for number, file in found if number.isdecimal())]


def _read_layout(db: sqlite3.Connection, path: Path, schema: Schema) -> int:
    """Read the layout of a database, 0 for a new one; `SchemaError` for one that this version cannot use."""
    # In this order: another process may be making the tables meanwhile, with the number of their layout.
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    if schema.oldest <= layout <= schema.newest or (layout == 0 and not tables):
        return int(layout)
    copies = [copy for copy in list_copies(path) if int(copy.name.rpartition(_COPY)[2]) <= schema.newest]
    back = f"put back {copies[-1]}, which is how it was before" if copies else "move the file away to start over"
    raise SchemaError(
        f"The {schema.name} database {path} was written by another version of citebot (layout {layout}; this one takes "
        f"{schema.oldest} to {schema.newest}). Use that version, or {back}."
    )


def _keep_copy(path: Path, layout: int, schema: Schema) -> None:
    """Keep a copy of a database beside it, readable only by its owner, whole or not at all."""
    copy = path.with_name(f"{path.name}{_COPY}{layout}")
    draft = copy.with_name(f"{copy.name}.draft")
    try:
        for stale in (draft, draft.with_name(f"{draft.name}-journal")):  # of a process that was killed at it
            stale.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(draft)) as target:
                db.backup(target)
            draft.replace(copy)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise SchemaError(
            f"The {schema.name} database {path} has to be brought to a new layout, and no copy of it could be kept "
            f"before ({error}). Nothing was changed. See that its folder can be written and has room for "
            f"{path.stat().st_size:,} bytes more, and start again."
        ) from error


def _change_layout(db: sqlite3.Connection, path: Path, schema: Schema, layout: int) -> None:
    try:
        for statement in schema.list_statements(since=layout):
            run_statement(db, statement)
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF in _DISK_ERRORS:
            raise
        raise SchemaError(
            f"The {schema.name} database {path} cannot be brought from layout {layout} to {schema.newest} ({error}). "
            "Nothing was changed. Use the version of citebot that wrote it, and report this."
        ) from error
    db.execute(f"PRAGMA user_version = {schema.newest:d}")


def _split_statements(sql: str) -> Iterator[str]:
    """Split statements, dropping comments: `executescript` would commit first."""
    lines: list[str] = []
    for line in sql.splitlines():
        if not lines and (not line.strip() or line.startswith("--")):
            continue
        lines.append(line)
        if sqlite3.complete_statement("\n".join(lines)):
            yield "\n".join(lines)
            lines = []
    if lines:
        raise AssertionError(f"a statement without an end: {lines[0]}")


def load_conversation_schema() -> Schema:
    """Return the layout of our tables, beside LangGraph's."""
    return Schema.load("conversation", "agent.persistence")


def create_checkpoint_tables(db: sqlite3.Connection) -> None:
    """Make the tables that LangGraph keeps its checkpoints in."""
    from langgraph.checkpoint.sqlite import SqliteSaver  # takes a second

    SqliteSaver(db).setup()
