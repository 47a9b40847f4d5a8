"""Postgres goes away and comes back: what can be done again is, and the rest is a sentence; nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from agent import PostgresDatabase
from agent.persistence.postgres import database as postgres
from bot.errors import InboxError
from bot.storage.database import open_postgres
from bot.storage.inbox import Inbox
from tests.bot.chat import message
from tests.fakes.clock import FakeClock
from tests.fakes.cut_proxy import CutProxy, open_cut_proxy
from tests.fakes.postgres import make_database
from tests.waiting import expect

pytestmark = pytest.mark.needs("postgres")


@pytest_asyncio.fixture
async def way() -> AsyncIterator[tuple[CutProxy, PostgresDatabase]]:
    """A database, and the proxy that leads to it."""
    async with make_database() as url, open_cut_proxy(url) as (proxy, address), open_postgres(address) as database:
        yield proxy, database


async def test_a_statement_whose_connection_is_cut_is_run_again(way: tuple[CutProxy, PostgresDatabase]) -> None:
    proxy, database = way

    sleeping = asyncio.create_task(database.row("SELECT 1 FROM pg_sleep(0.5)"))
    await asyncio.sleep(0.2)
    proxy.cut()

    assert await sleeping == (1,)


@pytest.mark.exhaustive
async def test_a_message_is_stored_and_claimed_once_through_connections_that_break(
    way: tuple[CutProxy, PostgresDatabase],
) -> None:
    proxy, database = way
    inbox, claims = Inbox(database, FakeClock(), "here"), 0

    async def cut_often() -> None:
        while True:
            await asyncio.sleep(0.03)
            proxy.cut()

    cutting = asyncio.create_task(cut_often())
    for number in range(20):
        entry = None
        while entry is None:
            try:
                await inbox.store(message(id=str(number)), str(number))
                entry = await inbox.find(message(id=str(number)).key)
            except InboxError:
                await asyncio.sleep(0.01)
        with suppress(InboxError):  # after which it may have been made all the same
            claims += await inbox.claim(entry.id) is not None
    cutting.cancel()

    assert await database.row("SELECT count(*), max(claims) FROM inbox") == (20, 1)
    assert claims > 0


async def test_a_server_that_is_away_is_a_sentence_and_is_used_again_when_it_is_back(
    way: tuple[CutProxy, PostgresDatabase],
) -> None:
    proxy, database = way
    proxy.set_mode("refuse")
    proxy.cut()

    with pytest.raises(InboxError, match=r"Postgres cannot be used: .*See that it runs"):
        await database.rows("SELECT 1")

    proxy.set_mode("pass")
    async with expect("a server that is away is a sentence and is used again when it is back"):
        while True:
            try:
                assert await database.rows("SELECT 1") == [(1,)]
            except InboxError:
                continue
            break


async def test_a_network_that_swallows_everything_is_a_sentence(
    way: tuple[CutProxy, PostgresDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, database = way
    monkeypatch.setattr(postgres, "_ATTEMPT_SECONDS", 0.3)
    proxy.set_mode("hang")

    with pytest.raises(InboxError, match="Postgres does not answer"):
        await database.rows("SELECT 1")
