"""The chat side in Postgres: laid out once, healed after cuts, and every failure a sentence without the password."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import psycopg
import pytest
import pytest_asyncio

from agent import PostgresDatabase
from agent.errors import SchemaError
from agent.persistence.migrations import Schema, migrate_postgres
from bot.errors import InboxError
from bot.storage.database import load_postgres_schema, open_postgres
from bot.storage.inbox import LEASE_SECONDS, Inbox
from tests.bot.chat import message
from tests.fakes.clock import FakeClock
from tests.fakes.postgres import make_database
from tests.fakes.refusing_postgres import be_of_version, refuse_connections

pytestmark = pytest.mark.needs("postgres")
NEWEST = load_postgres_schema().newest
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


async def test_citebots_that_start_at_once_lay_the_tables_out_once(url: str) -> None:
    async def open_once(number: int) -> None:
        async with open_postgres(url) as database:
            await database.write(INSERT, (str(number), "c", 1.0))

    await asyncio.gather(*(open_once(number) for number in range(6)))

    assert await run(url, "SELECT count(*) FROM threads") == [(6,)]
    assert await run(url, "SELECT name, layout FROM citebot_layouts") == [("message", load_postgres_schema().newest)]


async def test_a_step_that_fails_half_way_leaves_the_last_layout(database: PostgresDatabase, url: str) -> None:
    before = await read_tables(url)
    steps = {
        **load_postgres_schema().steps,
        NEWEST + 1: "CREATE TABLE half (n INTEGER);\nINSERT INTO nowhere VALUES (1);",
    }

    async with await psycopg.AsyncConnection.connect(url) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            await migrate_postgres(connection, Schema(name="message", steps=steps))

    assert await read_tables(url) == before
    async with open_postgres(url) as again:
        assert await again.rows("SELECT layout FROM citebot_layouts") == [(NEWEST,)]


async def test_only_the_steps_that_are_missing_are_taken_and_other_schemas_are_left_alone(
    database: PostgresDatabase, url: str
) -> None:
    await database.write(INSERT, ("k", "c", 1.0))
    steps = {**load_postgres_schema().steps, NEWEST + 1: "ALTER TABLE threads ADD COLUMN note TEXT;"}

    async with await psycopg.AsyncConnection.connect(url) as connection:
        await migrate_postgres(connection, Schema(name="message", steps=steps))
        await migrate_postgres(connection, Schema(name="other", steps={1: "CREATE TABLE others (n INTEGER);"}))

    assert await database.rows("SELECT key, note FROM threads") == [("k", None)]
    assert await database.rows("SELECT name, layout FROM citebot_layouts ORDER BY name") == [
        ("message", NEWEST + 1),
        ("other", 1),
    ]


@pytest.mark.parametrize("layout", [0, 99])
async def test_a_layout_that_is_not_known_is_refused(database: PostgresDatabase, url: str, layout: int) -> None:
    await database.write("UPDATE citebot_layouts SET layout = ?", (layout,))

    assert f"made by another version of citebot (layout {layout}; this one takes 1 to {NEWEST})" in await refusal(url)
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
    with pytest.raises(InboxError, match="Postgres holds no tables of this citebot"):
        await database.rows("SELECT * FROM nowhere")

    assert await database.rows("SELECT conversation FROM threads") == [("c",)]


async def test_what_postgres_cannot_hold_is_left_out_of_a_text(database: PostgresDatabase) -> None:
    await database.write(INSERT, ("a\0b \ud83d 100% ?", "c", 1.0))

    assert await database.rows("SELECT key FROM threads WHERE key LIKE '%100%'") == [("ab ? 100% ?",)]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("postgresql://ann:hunter2@127.0.0.1:1/shop", "nothing listens at the host and port"),
        ("postgresql://ann:pw@hunter2@host.invalid:5432/shop", "in a password, @ is %40"),
        ("postgresql://ann:hunter2/x@127.0.0.1/shop", "in a password, @ is %40"),
        ("postgresql://ann:hunter2@host.invalid:5432/shop", "the host in DATABASE_URL is not known"),
        ("hunter2", "DATABASE_URL cannot be read. Write it as postgresql://"),
        ("mysql://ann:hunter2@127.0.0.1/shop", "DATABASE_URL cannot be read. Write it as postgresql://"),
        ("host=127.0.0.1 password=hunter2", "DATABASE_URL cannot be read. Write it as postgresql://"),
        ("postgresql://ann@127.0.0.1/?hunter2=1", "DATABASE_URL cannot be read. Write it as postgresql://"),
    ],
    ids=[
        "closed port",
        "@ in the password",
        "/ in the password",
        "no such host",
        "no address",
        "wrong scheme",
        "no url",
        "no such option",
    ],
)
async def test_an_address_that_leads_nowhere_is_a_sentence_without_the_password(address: str, says: str) -> None:
    sentence = await refusal(address)

    assert says in sentence
    assert "hunter2" not in sentence


async def test_a_database_or_a_user_that_is_not_there_is_a_sentence(url: str) -> None:
    server, _, name = url.rpartition("/")

    assert "there is no database of the name in DATABASE_URL" in await refusal(f"{server}/missing_one")
    assert "there is no user of the name in DATABASE_URL" in await refusal(f"postgresql://nobody@127.0.0.1:5432/{name}")


@pytest.mark.parametrize(
    ("code", "sentence", "says"),
    [
        ("28P01", 'password authentication failed for user "ann"', "the user or the password in DATABASE_URL is wrong"),
        ("53300", "sorry, too many clients already", "it has no connection left; raise max_connections"),
        ("53300", "remaining connection slots are reserved", "it has no connection left; raise max_connections"),
        ("57P03", "the database system is starting up", "the database system is starting up"),
    ],
)
async def test_a_refusal_is_a_sentence_without_the_password(code: str, sentence: str, says: str) -> None:
    async with refuse_connections(code, sentence) as address:
        said = await refusal(address)

    assert says in said
    assert "hunter2" not in said


async def test_a_server_that_is_too_old_is_told_the_oldest_that_will_do() -> None:
    async with be_of_version("13.4") as address:
        assert await refusal(address) == "Postgres 13 is too old for citebot. Use version 14 or later."


async def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)

    assert "[cluster]" in await refusal("postgresql://ann:hunter2@127.0.0.1/shop")


async def test_statements_of_a_transaction_are_made_together_or_not_at_all(database: PostgresDatabase) -> None:
    await database.write(INSERT, ("kept", "c", 1.0))
    with pytest.raises(InboxError, match="Postgres failed: duplicate key"):
        await database.run_all([(INSERT, ("undone", "c", 1.0)), (INSERT, ("kept", "c", 1.0))])

    assert await database.rows("SELECT key FROM threads") == [("kept",)]


async def test_leases_go_by_the_clock_of_the_server(database: PostgresDatabase) -> None:
    """Not by that of the process, nor by the beginning of a transaction."""
    inbox = Inbox(database, FakeClock(5.0), "here")
    stored = await inbox.store(message(), "c")
    assert stored is not None

    await inbox.claim(stored.id)

    left = await database.row("SELECT lease_until - extract(epoch FROM clock_timestamp()) FROM inbox")
    assert left is not None
    assert LEASE_SECONDS - 10 < left[0] <= LEASE_SECONDS


async def test_of_processes_that_claim_in_one_conversation_at_once_one_gets_it(url: str) -> None:
    """What another one has written at the same moment is seen only by who waits for the lock of the conversation."""
    async with AsyncExitStack() as stack:
        databases = [await stack.enter_async_context(open_postgres(url)) for _ in range(6)]
        inboxes = [Inbox(database, FakeClock(), f"process {n}") for n, database in enumerate(databases)]
        for number in range(25):
            entries = [await inbox.store(message(id=f"{number}.{n}"), f"c{number}") for n, inbox in enumerate(inboxes)]
            claims = await asyncio.gather(
                *(inbox.claim(entry.id) for inbox, entry in zip(inboxes, entries, strict=True) if entry)
            )
            assert len([claim for claim in claims if claim]) == 1


async def test_the_question_of_a_reply_is_found_through_an_index(database: PostgresDatabase) -> None:
    explain = "EXPLAIN SELECT id FROM inbox WHERE has_handle(handles, ?, ?)"

    plan = await database.run_all([("SET LOCAL enable_seqscan = off", ()), (explain, ("C", "r1"))])

    assert "inbox_by_reply" in str(plan)
