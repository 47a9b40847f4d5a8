"""Notifications of Postgres: heard at once, again after the connection was lost, and sent by what they tell of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import pytest_asyncio

from agent import PostgresDatabase
from bot.jobs.job_queue import listen
from bot.storage.database import open_postgres
from bot.storage.manifest_table import CHANNEL, ManifestTable
from tests.fakes.cut_proxy import open_cut_proxy
from tests.fakes.loopback.changes import Changes
from tests.fakes.postgres import make_database
from tests.indexer.segments.test_manifest_contract import FIRST, make_next, publish
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.needs("postgres")


class Ear:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.count = 0
        self._changes = Changes()

    def tell(self) -> None:
        self.count += 1
        self._changes.tell()

    async def wait_for(self, count: int) -> None:
        await self._changes.until(lambda: self.count >= count, LIMIT_SECONDS)


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    async with make_database() as url:
        yield url


@asynccontextmanager
async def open_ear(url: str) -> AsyncIterator[Ear]:
    """Listen, and wait until the connection is there."""
    ear = Ear()
    async with listen(url, CHANNEL, ear.tell, watch=0.2):
        await ear.wait_for(1)
        yield ear


async def notify(database: PostgresDatabase) -> None:
    await database.rows(f"SELECT pg_notify('{CHANNEL}', '')")


async def test_a_switch_is_heard_and_one_that_came_too_late_is_not(address: str) -> None:
    async with open_postgres(address) as database, open_ear(address) as ear:
        manifests = ManifestTable(database)
        await publish(manifests, FIRST)
        await ear.wait_for(2)

        late = replace(make_next(FIRST), version=1, publication="e" * 32)
        assert not await publish(manifests, late)
        await publish(manifests, make_next(FIRST))
        await ear.wait_for(3)

        assert ear.count == 3


async def test_what_may_have_been_missed_is_told_when_the_connection_is_back(address: str) -> None:
    async with (
        open_postgres(address) as database,
        open_cut_proxy(address) as (network, through),
        open_ear(through) as ear,
    ):
        network.set_mode("refuse")
        network.cut()
        await notify(database)
        network.set_mode("pass")
        await ear.wait_for(2)

        await notify(database)
        await ear.wait_for(3)


async def test_listening_ends_also_while_there_is_no_server(address: str) -> None:
    async with open_cut_proxy(address) as (network, through):
        network.set_mode("refuse")
        async with listen(through, CHANNEL, lambda: None):
            await asyncio.sleep(0)
