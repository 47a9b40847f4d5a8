"""Socket Mode connections to Slack, and whether Slack still accepts the tokens they were opened with."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from bot.adapters.slack.api_errors import map_app_token_error
from bot.adapters.slack.client import SlackClient, is_local
from bot.adapters.slack.parsing import is_well_formed, parse_body
from bot.clock import Clock
from bot.errors import ChatError, PlatformUnreachable, RateLimited

CONNECTIONS = 2  # while one is opened again, the other one takes what comes
LARGEST = 2_000_000  # characters of a frame; what has over 4 MB ends the connection before it is here

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0


@asynccontextmanager
async def open_sockets(
    app: AsyncApp,
    client: SlackClient,
    app_token: str,
    *,
    connections: int = CONNECTIONS,
    ping_interval: float = 10,
    count_malformed: Callable[[], None],
) -> AsyncIterator[Sequence[Socket]]:
    """Open connections and yield them; raises a `ChatError` if the token opens none."""
    # The SDK tries for ever, whatever the reason; a wrong token should be reported at once.
    await check_app_token(client, app_token)
    sockets: list[Socket] = []
    async with AsyncExitStack() as stack:
        for _ in range(connections):
            socket = Socket(app, client, app_token, ping_interval=ping_interval, count_malformed=count_malformed)
            stack.push_async_callback(socket.close)
            await socket.connect_to_new_endpoint()
            sockets.append(socket)
        yield sockets


async def check_app_token(client: SlackClient, app_token: str) -> None:
    """Raise a `ChatError` if the app token opens no connection."""
    await client.read(lambda: client.web.apps_connections_open(app_token=app_token), map_app_token_error)


class Socket(SocketModeClient):
    """One connection. Malformed frames are skipped."""

    def __init__(
        self,
        app: AsyncApp,
        client: SlackClient,
        app_token: str,
        *,
        ping_interval: float,
        count_malformed: Callable[[], None],
    ) -> None:
        logger = cast("logging.Logger", _SocketLog(app.logger, self._forget_address))
        super().__init__(app_token, logger=logger, web_client=client.web, ping_interval=ping_interval)
        if is_local(client.web.base_url):
            self.proxy = None
        self._app = app
        self._client = client
        self._count_malformed = count_malformed
        self.socket_mode_request_listeners.append(self._deliver)

    async def issue_new_wss_url(self) -> str:
        """Request a connection's address, with a few retries if Slack does not answer or asks to wait."""
        answer = await self._client.read(
            lambda: self._client.web.apps_connections_open(app_token=self.app_token), map_app_token_error
        )
        return str(answer["url"])

    async def enqueue_message(self, message: str) -> None:
        """Pass well-formed frames on; acknowledge and drop malformed ones."""
        frame = parse_body(message, "application/json") if len(message) <= LARGEST else None
        envelope = frame.get("envelope_id") if frame is not None else None
        if frame is not None and (envelope is None or _is_envelope(frame)):
            await super().enqueue_message(message)
            return
        log.warning("a frame from Slack with %d characters could not be read, and was skipped", len(message))
        self._count_malformed()
        if isinstance(envelope, str):
            await self.send_socket_mode_response(SocketModeResponse(envelope_id=envelope))

    def _forget_address(self) -> None:
        """Make the SDK ask for a new address: each is good for one connection, and it would retry the old one
        forever.
        """
        self.wss_uri = None

    async def _deliver(self, _: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        began = time.time()
        await send_async_response(self, request, await run_async_bolt_app(self._app, request), began)


class _SocketLog(logging.LoggerAdapter[logging.Logger]):
    """Notices failed attempts to connect, which the SDK reports only in its log, each with a traceback."""

    def __init__(self, logger: logging.Logger, forget_address: Callable[[], None]) -> None:
        super().__init__(logger)
        self._forget_address = forget_address

    @property
    def level(self) -> int:
        """The log level, which the SDK reads."""
        return self.logger.level

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        if str(msg).startswith("Failed to connect"):
            self._forget_address()
            log.warning("cannot connect to Slack (%s); trying again", type(sys.exception()).__name__)
        else:
            super().exception(msg, *args, exc_info=exc_info, **more)


def _is_envelope(frame: Mapping[str, Any]) -> bool:
    kind, envelope, payload = (frame.get(name) for name in ("type", "envelope_id", "payload"))
    return isinstance(kind, str) and isinstance(envelope, str) and isinstance(payload, dict) and is_well_formed(payload)


class TokenMonitor:
    """Whether Slack accepted the tokens when they were last checked; `refusal` is empty if it did.

    A refusal is logged and checked again: once the app is installed again, citebot works without a
    restart. `is_connected` says whether events can arrive; `app_token` is checked only if they
    cannot.
    """

    def __init__(
        self, client: SlackClient, app_token: str, is_connected: Callable[[], Awaitable[bool]], clock: Clock
    ) -> None:
        self.refusal = ""
        self._client = client
        self._app_token = app_token
        self._is_connected = is_connected
        self._clock = clock

    async def watch(self) -> None:
        """Check once a minute until this is cancelled."""
        while True:
            await self._clock.sleep(EVERY_SECONDS)
            try:
                await self._client.identity()
                if not await self._is_connected():
                    await check_app_token(self._client, self._app_token)
            except (RateLimited, PlatformUnreachable) as error:
                log.info("the tokens could not be checked: %s", error)
            except ChatError as error:
                self._note_refusal(str(error))
            else:
                self._note_refusal("")

    def _note_refusal(self, refusal: str) -> None:
        if refusal and refusal != self.refusal:
            log.error("%s citebot checks again every minute.", refusal)
        elif self.refusal and not refusal:
            log.warning("Slack accepts the tokens again.")
        self.refusal = refusal
