"""The tables of the job queue: made once by however many processes, upgraded, and refused where they are not ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from procrastinate.schema import SchemaManager
from psycopg import AsyncConnection

from bot.errors import InboxError
from bot.jobs.job_queue import list_due_upgrades, prepare_queue
from bot.storage.database import open_postgres
from tests.fakes.postgres import make_database

pytestmark = pytest.mark.needs("postgres")


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with make_database() as address:
        async with open_postgres(address):
            pass
        yield address


async def prepare(url: str) -> None:
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        await prepare_queue(connection)


async def fetch(url: str, sql: str) -> list[tuple[object, ...]]:
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        return [tuple(row) for row in await (await connection.execute(sql)).fetchall()]


def list_upgrades() -> list[Path]:
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


async def test_processes_that_start_at_once_make_the_tables_once(url: str) -> None:
    await asyncio.gather(*(prepare(url) for _ in range(6)))

    assert await fetch(url, "SELECT count(*) FROM procrastinate_jobs") == [(0,)]
    assert await fetch(url, "SELECT count(*) FROM citebot_layouts WHERE name = 'queue'") == [(1,)]
    assert await fetch(url, "SELECT count(*) FROM pg_trigger WHERE tgname = 'citebot_wake'") == [(1,)]


async def test_tables_of_an_older_version_are_upgraded(url: str) -> None:
    older = [path for path in list_upgrades() if path.name < "03.04"]
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        for path in older:
            await connection.execute(path.read_text(encoding="utf-8"))
    await fetch(url, "INSERT INTO citebot_layouts VALUES ('queue', 3030001, now()) RETURNING 1")

    await prepare(url)

    assert await fetch(url, "SELECT count(*) FROM pg_proc WHERE proname = 'procrastinate_retry_job_v2'") == [(1,)]
    assert await fetch(url, "SELECT count(*) FROM pg_trigger WHERE tgname = 'citebot_wake'") == [(1,)]
    assert await fetch(url, "SELECT layout FROM citebot_layouts WHERE name = 'queue'") == [(3040001,)]


async def test_an_upgrade_that_fails_leaves_everything_as_it_was(url: str) -> None:
    await prepare(url)
    await fetch(url, "UPDATE citebot_layouts SET layout = 3020050 WHERE name = 'queue' RETURNING 1")

    with pytest.raises(Exception, match="already exists"):
        await prepare(url)  # its second step makes what is there

    assert await fetch(url, "SELECT layout FROM citebot_layouts WHERE name = 'queue'") == [(3020050,)]


async def test_newer_tables_and_those_of_somebody_else_are_refused(url: str) -> None:
    await prepare(url)
    await fetch(url, "UPDATE citebot_layouts SET layout = 99000000 WHERE name = 'queue' RETURNING 1")
    with pytest.raises(InboxError, match=r"made by a newer citebot \(layout 99000000"):
        await prepare(url)

    await fetch(url, "DELETE FROM citebot_layouts WHERE name = 'queue' RETURNING 1")
    with pytest.raises(InboxError, match="a job queue that citebot did not make"):
        await prepare(url)


def test_what_takes_away_what_the_version_before_needs_waits_for_the_next_one() -> None:
    upgrades = {1: Path("01_01_pre_a.sql"), 2: Path("01_50_post_a.sql"), 3: Path("02_01_pre_b.sql")}

    assert list_due_upgrades(upgrades, 0) == [1, 2, 3]
    assert list_due_upgrades(upgrades | {4: Path("02_50_post_b.sql")}, 0) == [1, 2, 3]
    assert list_due_upgrades(upgrades, 3) == []
