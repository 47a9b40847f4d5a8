"""The SDK's own client at the server of the tests, as one person, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.waiting import LIMIT_SECONDS

Era = Literal["auto", "legacy"]


@asynccontextmanager
async def connected(address: str, token: str, *, era: Era = "auto", **headers: str) -> AsyncIterator[Client]:
    """Connect over HTTP."""
    sent = {"Authorization": f"Bearer {token}"} | headers
    async with (
        httpx2.AsyncClient(headers=sent, timeout=LIMIT_SECONDS) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


def text_of(result: Any) -> str:
    """All that an agent is shown of a result."""
    return "\n".join(part.text for part in result.content)
