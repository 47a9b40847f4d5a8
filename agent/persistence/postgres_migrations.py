"""Brings tables in Postgres to the layout of this version: the same numbered SQL files, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agent.errors import SchemaError
from agent.persistence.migrations import Schema

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection

_LOCK = 0x63697465_626F74  # "citebot": whoever lays tables out waits for this
_LAYOUTS = """CREATE TABLE IF NOT EXISTS citebot_layouts (
    name TEXT PRIMARY KEY, layout INTEGER NOT NULL, changed_at TIMESTAMPTZ NOT NULL)"""


async def migrate_postgres(connection: AsyncConnection[Any], schema: Schema) -> None:
    """Bring the tables of a schema to the newest layout, or make them; a database may have several schemas.

    Whatever goes wrong, the tables are as they were. Processes that start at once do it one after the other, which also
    holds behind a pooler of transactions. No copy is kept: Postgres has tools of its own for that.

    Raises `SchemaError`, or `psycopg.Error`.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
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
