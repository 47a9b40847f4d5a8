"""The real Bolt and SDK in front of the fake Slack, for the fake's own tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.loopback.closing import close_server
from tests.fakes.slack import FakeSlack


def client_of(fake: FakeSlack) -> AsyncWebClient:
    """A client that repeats nothing by itself."""
    return AsyncWebClient(token=fake.bot_token, base_url=fake.api_url, retry_handlers=[])


def app_of(fake: FakeSlack) -> AsyncApp:
    """A Bolt app without listeners."""
    return AsyncApp(client=client_of(fake), signing_secret=fake.signing_secret)


def section(text: str) -> dict[str, Any]:
    """A block with some text."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


async def refusal(call: Awaitable[Any]) -> str:
    """The error that a call is refused with."""
    with pytest.raises(SlackApiError) as refused:
        await call
    return str(refused.value.response["error"])


@asynccontextmanager
async def by_socket(
    fake: FakeSlack, app: AsyncApp, *, ping_interval: float = 5
) -> AsyncIterator[AsyncSocketModeHandler]:
    """Run the app in Socket Mode, connected."""
    handler = AsyncSocketModeHandler(app, fake.app_token, ping_interval=ping_interval)
    before = len(fake.socket.connections)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    await fake.connected(before + 1)
    try:
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def by_http(fake: FakeSlack, app: AsyncApp) -> AsyncIterator[None]:
    """Run the app behind its request URL."""
    runner = web.AppRunner(app.web_app("/slack/events"), shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    fake.serve_http(f"http://{host}:{port}/slack/events")
    try:
        yield
    finally:
        await close_server(runner)
