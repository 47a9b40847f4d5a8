"""Opens the databases of a backup before they replace anything: whole, laid out as citebot does, and nothing beside."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agent import Schema, create_checkpoint_tables, load_conversation_schema, run_statement
from bot.maintenance.backup_archive import InvalidBackup
from bot.maintenance.disk_usage import CONVERSATIONS
from bot.storage.database import INBOX_FILE, load_message_schema
from indexer import CATALOG_VERSION, REPOSITORIES_FOLDER, create_catalog_tables

_MOST_OBJECTS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """The known versions of a database, and its permitted tables and indexes with their SQL."""

    versions: Collection[int]
    objects: Collection[tuple[str, str, str]]

    @classmethod
    def read(cls, schema: Schema, beside: Callable[[sqlite3.Connection], None] | None = None) -> _Layout:
        """Take a schema one statement after the other, as any state in between may be found; `beside` it are others."""
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
        """Lay a catalog out."""
        with closing(sqlite3.connect(":memory:")) as db:
            create_catalog_tables(db)
            return cls(versions=range(1, CATALOG_VERSION + 1), objects=_read_objects(db))


def check_databases(folder: Path) -> None:
    """Check every database of an unpacked backup; raises `InvalidBackup` for the first that cannot be used."""
    layouts = {
        CONVERSATIONS: _Layout.read(load_conversation_schema(), create_checkpoint_tables),
        INBOX_FILE: _Layout.read(load_message_schema()),
        f"{REPOSITORIES_FOLDER}/*/catalog.sqlite": _Layout.read_catalog(),
    }
    for pattern, layout in layouts.items():
        for path in sorted(folder.glob(pattern)):
            _check_database(path, path.relative_to(folder).as_posix(), layout)


def _check_database(path: Path, name: str, layout: _Layout) -> None:
    """Refuse what would be run when the database is used, such as a trigger, before anything of it is; then damage."""
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
    """List tables, indexes and all else that has SQL of its own, with the SQL in one line."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchmany(_MOST_OBJECTS)
    return [(str(kind), str(name), " ".join(str(sql).split())) for kind, name, sql in rows]
