"""The chat side in Postgres: laid out once, healed after cuts, and every failure a sentence without the password."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from agent.errors import SchemaError
from agent.persistence.migrations import Schema
from agent.persistence.postgres_migrations import migrate_postgres
from bot.errors import InboxError
from bot.storage.database import load_message_schema
from bot.storage.postgres import PostgresDatabase, load_postgres_schema, open_postgres
from tests.fakes.postgres import make_database

psycopg = pytest.importorskip("psycopg", reason="the extra `cluster` is not installed")
INSERT = "INSERT INTO threads (key, conversation, last_at) VALUES (?, ?, ?)"


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with make_database() as address:
        yield address


@pytest_asyncio.fixture
async def database(url: str) -> AsyncIterator[PostgresDatabase]:
    async with open_postgres(url) as opened:
        yield opened


async def refusal(url: str) -> str:
    """What is said where a database cannot be opened."""
    with pytest.raises(InboxError) as raised:
        async with open_postgres(url):
            pass
    return str(raised.value)


async def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as somebody else; return what the last one gives."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


async def read_tables(url: str) -> set[object]:
    return {name for (name,) in await run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def test_the_steps_have_the_numbers_that_those_of_sqlite_have() -> None:
    assert sorted(load_postgres_schema().steps) == sorted(load_message_schema().steps)


async def test_citebots_that_start_at_once_lay_the_tables_out_once(url: str) -> None:
    async def open_once(number: int) -> None:
        async with open_postgres(url) as database:
            await database.write(INSERT, (str(number), "c", 1.0))

    await asyncio.gather(*(open_once(number) for number in range(6)))

    assert await run(url, "SELECT count(*) FROM threads") == [(6,)]
    assert await run(url, "SELECT name, layout FROM citebot_layouts") == [("message", load_postgres_schema().newest)]


async def test_a_step_that_fails_half_way_leaves_the_last_layout(database: PostgresDatabase, url: str) -> None:
    before = await read_tables(url)
    steps = {**load_postgres_schema().steps, 3: "CREATE TABLE half (n INTEGER);\nINSERT INTO nowhere VALUES (1);"}

    async with await psycopg.AsyncConnection.connect(url) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            await migrate_postgres(connection, Schema(name="message", steps=steps))

    assert await read_tables(url) == before
    async with open_postgres(url) as again:
        assert await again.rows("SELECT layout FROM citebot_layouts") == [(2,)]


async def test_only_the_steps_that_are_missing_are_taken_and_other_schemas_are_left_alone(
    database: PostgresDatabase, url: str
) -> None:
    await database.write(INSERT, ("k", "c", 1.0))
    steps = {**load_postgres_schema().steps, 3: "ALTER TABLE threads ADD COLUMN note TEXT;"}

    async with await psycopg.AsyncConnection.connect(url) as connection:
        await migrate_postgres(connection, Schema(name="message", steps=steps))
        await migrate_postgres(connection, Schema(name="other", steps={1: "CREATE TABLE others (n INTEGER);"}))

    assert await database.rows("SELECT key, note FROM threads") == [("k", None)]
    assert await database.rows("SELECT name, layout FROM citebot_layouts ORDER BY name") == [
        ("message", 3),
        ("other", 1),
    ]


@pytest.mark.parametrize("layout", [0, 99])
async def test_a_layout_that_is_not_known_is_refused(database: PostgresDatabase, url: str, layout: int) -> None:
    await database.write("UPDATE citebot_layouts SET layout = ?", (layout,))

    assert f"made by another version of citebot (layout {layout}; this one takes 1 to 2)" in await refusal(url)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        with pytest.raises(SchemaError):
            await migrate_postgres(connection, load_postgres_schema())


async def test_connections_that_were_cut_while_idle_are_not_noticed(database: PostgresDatabase, url: str) -> None:
    await asyncio.gather(*(database.write(INSERT, (str(number), "c", 1.0)) for number in range(8)))
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

    ((cut,),) = await run(url, f"SELECT count(pg_terminate_backend(pid)) {others}")

    assert cut
    assert await database.row("SELECT count(*) FROM threads") == (8,)


async def test_a_database_that_takes_no_writes_is_a_sentence_and_is_read_on(
    database: PostgresDatabase, url: str
) -> None:
    name = url.rpartition("/")[2]
    await run(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    async with await psycopg.AsyncConnection.connect(url):
        assert "takes no writes" in await refusal(url)


async def test_a_statement_that_fails_changes_nothing_and_the_next_one_is_run(database: PostgresDatabase) -> None:
    await database.write(INSERT, ("k", "c", 1.0))
    with pytest.raises(InboxError, match=r'Postgres failed: duplicate key value .* "threads_pkey"\.$'):
        await database.write(INSERT, ("k", "d", 2.0))
    with pytest.raises(InboxError, match="Postgres failed: relation"):
        await database.rows("SELECT * FROM nowhere")

    assert await database.rows("SELECT conversation FROM threads") == [("c",)]


async def test_what_postgres_cannot_hold_is_left_out_of_a_text(database: PostgresDatabase) -> None:
    await database.write(INSERT, ("a\0b \ud83d 100% ?", "c", 1.0))

    assert await database.rows("SELECT key FROM threads WHERE key LIKE '%100%'") == [("ab ? 100% ?",)]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("postgresql://ann:hunter2@127.0.0.1:1/shop", "cannot be used (connection failed: "),
        ("postgresql://ann:hunter2@127.0.0.1:many/shop", "Postgres cannot be "),
        ("postgresql://ann:hunter2@host.invalid:5432/shop", "cannot be used (failed to resolve host"),
        ("hunter2", "The address of Postgres cannot be read"),
        ("postgresql://ann@127.0.0.1/?hunter2=1", "The address of Postgres cannot be read"),
    ],
    ids=["closed port", "no number", "no such host", "no address", "no such option"],
)
async def test_an_address_that_leads_nowhere_is_a_sentence_without_the_password(address: str, says: str) -> None:
    sentence = await refusal(address)

    assert says in sentence
    assert "hunter2" not in sentence


async def test_a_database_that_is_not_there_is_named(url: str) -> None:
    assert 'database "missing_one" does not exist' in await refusal(f"{url.rpartition('/')[0]}/missing_one")
