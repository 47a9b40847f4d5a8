"""Every database of conversations, for the contract that each of them has to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.postgres.saver import open_postgres_saver
from tests.fakes.postgres import lend_database
from tests.needs import name_params

OpenSaver = Callable[[], AbstractAsyncContextManager[ConversationSaver]]


@asynccontextmanager
async def begin_sqlite(folder: Path) -> AsyncIterator[OpenSaver]:
    yield lambda: open_saver(folder / "c.db")


@asynccontextmanager
async def begin_postgres(_: Path) -> AsyncIterator[OpenSaver]:
    async with lend_database() as url:
        yield lambda: open_postgres_saver(url)


# By technology: what is there for one test, in a folder or a database that is its alone.
IMPLEMENTATIONS = {"sqlite": begin_sqlite, "postgres": begin_postgres}


@pytest_asyncio.fixture(params=name_params(IMPLEMENTATIONS))
async def open_conversations(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenSaver]:
    """Open the conversations, as another process does that shares them, or the same one after a restart."""
    async with IMPLEMENTATIONS[request.param](tmp_path) as opening:
        yield opening


@pytest_asyncio.fixture
async def conversations(open_conversations: OpenSaver) -> AsyncIterator[ConversationSaver]:
    async with open_conversations() as opened:
        yield opened
