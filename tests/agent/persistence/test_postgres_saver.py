"""Conversations in Postgres: processes that start at once, connections that break, and addresses that are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit

import psycopg
import pytest
import pytest_asyncio
from langgraph.checkpoint.base import empty_checkpoint

from agent.errors import CheckpointError, CheckpointUnreachable
from agent.persistence.conversation_saver import locate_checkpoints
from agent.persistence.evidence_store import ERRORS, EvidenceStore
from agent.persistence.migrations import Schema, migrate_postgres
from agent.persistence.postgres.database import connect_postgres, heed_cancels
from agent.persistence.postgres.saver import PostgresConversations, load_postgres_schema, open_postgres_saver
from tests.fakes.postgres import make_database
from tests.needs import SERVER
from tests.waiting import wait_for_end

pytestmark = pytest.mark.needs("postgres")


async def put(saver: PostgresConversations) -> None:
    """Put a checkpoint as a run does."""
    async with saver.open_checkpoints() as checkpoints:
        await checkpoints.aput(locate_checkpoints("t"), empty_checkpoint(), {}, {})


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with make_database() as made:
        yield made


async def run_sql(url: str, sql: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(sql)


async def cut_all(url: str) -> None:
    """Break every connection to a database, as a restart of Postgres does."""
    name = urlsplit(url).path[1:]
    await run_sql(
        f"{SERVER}/postgres", f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )


async def count_steps(saver: PostgresConversations) -> int:
    return int((await saver.rows("SELECT count(*) FROM checkpoints"))[0][0])


async def test_processes_that_start_at_once_all_find_the_tables_made(url: str) -> None:
    async def open_once() -> None:
        async with open_postgres_saver(url) as saver:
            await put(saver)

    await asyncio.gather(*(open_once() for _ in range(6)))

    async with open_postgres_saver(url) as saver:
        assert await count_steps(saver) == 6
        assert await saver.rows("SELECT count(*) FROM pg_index WHERE NOT indisvalid") == [(0,)]


async def test_connections_that_were_cut_while_idle_cost_nothing(url: str) -> None:
    async with open_postgres_saver(url) as saver:
        for _ in range(3):
            await asyncio.gather(*(saver.rows("SELECT 1") for _ in range(8)))
            await cut_all(url)
            await put(saver)
        assert await count_steps(saver) == 3


async def test_work_under_way_when_connections_are_cut_is_done_once(url: str) -> None:
    async with open_postgres_saver(url) as saver:
        evidence = EvidenceStore(saver).of("t")
        keeping = asyncio.gather(*(evidence.keep(f"e{number}", "x" * 100_000) for number in range(60)))
        cutting = asyncio.gather(*(cut_all(url) for _ in range(3)))
        await asyncio.gather(keeping, cutting)
        assert await saver.rows("SELECT count(*), max(length(text)) FROM evidence") == [(60, 100_000)]


async def test_a_database_that_stays_away_is_waited_for_and_then_a_sentence(url: str) -> None:
    async with open_postgres_saver(url, patience=0.2) as saver:
        await run_sql(f"{SERVER}/postgres", f"ALTER DATABASE {urlsplit(url).path[1:]} WITH ALLOW_CONNECTIONS false")
        await cut_all(url)
        with pytest.raises(CheckpointUnreachable, match="Postgres"):
            await put(saver)
        await run_sql(f"{SERVER}/postgres", f"ALTER DATABASE {urlsplit(url).path[1:]} WITH ALLOW_CONNECTIONS true")
    async with open_postgres_saver(url) as saver:
        assert await count_steps(saver) == 0


async def test_a_database_that_takes_no_writes_is_called_unwritable(url: str) -> None:
    async with open_postgres_saver(url) as saver:
        await run_sql(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET default_transaction_read_only = on")
        await cut_all(url)
        with pytest.raises(CheckpointError, match="takes no writes"):
            await put(saver)


async def test_what_the_layout_before_held_goes_on_in_this_one(url: str) -> None:
    former = Schema(name="conversation", steps={3: load_postgres_schema().steps[3]})
    async with connect_postgres(url, ERRORS) as connection:
        await migrate_postgres(connection, former)
        await connection.execute("INSERT INTO evidence VALUES ('t', 'e1', 'text')")

    async with open_postgres_saver(url) as saver:
        assert await EvidenceStore(saver).of("t").texts(["e1"]) == {"e1": "text"}
        claim = await saver.claim_run("t")
        await EvidenceStore(saver).of("t", claim).keep("e1", "another text")
        assert await saver.rows("SELECT layout FROM citebot_layouts") == [(load_postgres_schema().newest,)]


async def test_a_newer_layout_is_refused_and_left_alone(url: str) -> None:
    async with open_postgres_saver(url) as saver:
        await EvidenceStore(saver).of("t").keep("e1", "text")
    await run_sql(url, "UPDATE citebot_layouts SET layout = 99")

    with pytest.raises(CheckpointError, match="another version"):
        async with open_postgres_saver(url):
            pass


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgres//secretword", "cannot be read"),
        ("postgresql://u:secret word@127.0.0.1/x", "cannot be read"),
        ("postgresql://u:half@secretword@127.0.0.1/x", "not known"),
        ("postgresql://u:secretword@127.0.0.1:1/x", "nothing listens"),
        (f"{SERVER}/no_such_database", "there is no database of the name"),
    ],
)
async def test_a_wrong_address_is_a_sentence_without_the_password(address: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        async with open_postgres_saver(address):
            pass

    assert "secret" not in str(caught.value)


async def test_a_cancellation_that_a_library_has_swallowed_is_raised_all_the_same() -> None:
    async def swallow() -> None:
        with heed_cancels(), suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        pytest.fail("it went on")

    swallowing = asyncio.create_task(swallow())
    await asyncio.sleep(0)
    swallowing.cancel()
    await wait_for_end(swallowing, "the end of what was cancelled")

    assert swallowing.cancelled()
