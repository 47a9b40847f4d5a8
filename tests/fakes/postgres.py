"""Databases of the Postgres on this machine: each is made for one test, and dropped after it."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

SERVER = os.environ.get("CITEBOT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")


@asynccontextmanager
async def make_database() -> AsyncIterator[str]:
    """Make an empty database, and give its address; skips where there is no Postgres, or no client."""
    psycopg = pytest.importorskip("psycopg", reason="the extra `cluster` is not installed")
    try:
        server = await psycopg.AsyncConnection.connect(f"{SERVER}/postgres", autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"there is no Postgres at {SERVER}: {' '.join(str(error).split())}")
    name = f"citebot_{uuid.uuid4().hex[:12]}"
    async with server:
        await server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{SERVER}/{name}"
        finally:
            await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
