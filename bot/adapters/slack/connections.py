"""The two ways in which Slack reaches the app: connections that the app opens, or requests to its address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp

from bot.adapters.slack.client import Calls, is_local
from bot.adapters.slack.refusals import of_app_token

PATH = "/slack/events"
CONNECTIONS = 2  # while one is opened anew, the other one takes what comes


class Server(Protocol):
    """A server that somebody else runs."""

    def add_post(self, path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]], /) -> object:
        """Let requests be posted to a path."""


@asynccontextmanager
async def by_socket(
    app: AsyncApp, calls: Calls, app_token: str, *, connections: int = CONNECTIONS, ping_interval: float = 10
) -> AsyncIterator[Sequence[AsyncSocketModeHandler]]:
    """Listen over connections of one's own, which are yielded; raises a `ChatError` where the token opens none."""
    # The SDK tries for ever, whatever the reason; a wrong token is to be told at once.
    await check_app_token(calls, app_token)
    handlers: list[AsyncSocketModeHandler] = []
    async with AsyncExitStack() as stack:
        for _ in range(connections):
            handler = AsyncSocketModeHandler(
                app, app_token, web_client=calls.client, ping_interval=ping_interval, logger=app.logger
            )
            if is_local(calls.client.base_url):
                handler.client.proxy = None
            stack.push_async_callback(handler.close_async)
            await handler.connect_async()  # type: ignore[no-untyped-call]
            handlers.append(handler)
        yield handlers


async def check_app_token(calls: Calls, app_token: str) -> None:
    """Raise a `ChatError` where the app token opens no connection."""
    await calls.read(lambda: calls.client.apps_connections_open(app_token=app_token), of_app_token)


def by_requests(app: AsyncApp, server: Server, *, path: str = PATH) -> None:
    """Listen at a path of a server that somebody else runs; Bolt checks the signatures."""

    async def receive(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    server.add_post(path, receive)
