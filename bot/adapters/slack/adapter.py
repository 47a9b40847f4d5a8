"""Opens Slack: the platform for replies first, and the listener once there are conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Self

from slack_bolt.async_app import AsyncApp

from bot.access import AccessPolicy
from bot.adapters.slack.channels import SharedChannels
from bot.adapters.slack.client import API_URL, BotIdentity, SlackClient, open_client
from bot.adapters.slack.connection import CONNECTIONS, Socket, TokenMonitor, open_sockets
from bot.adapters.slack.endpoint import PATH, EventLimit, make_endpoint
from bot.adapters.slack.ephemeral import SlackEphemeralMessages
from bot.adapters.slack.listener import HomeTab, SlackListener
from bot.adapters.slack.platform import RATES, SlackPlatform, Streaming
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.errors import SettingsError
from bot.http.server import LatePostRoutes
from bot.messages import RateLimit, SendMethod
from bot.monitoring.observer import CountLoss, ignore_loss
from bot.ports import Repositories
from bot.tasks import run_in_background


@dataclass(frozen=True, kw_only=True)
class SlackOptions:
    """The connection to Slack. Socket Mode needs the app token, HTTP mode the signing secret."""

    bot_token: str
    app_token: str = ""
    signing_secret: str = ""
    mode: Literal["socket", "http"] = "socket"
    streaming: Streaming = "auto"
    api_url: str = API_URL
    connections: int = CONNECTIONS
    ping_interval: float = 10.0
    rates: Mapping[SendMethod, RateLimit] = field(default_factory=lambda: RATES)

    def __post_init__(self) -> None:
        if self.mode == "http" and not self.signing_secret:
            raise SettingsError("HTTP mode needs SLACK_SIGNING_SECRET: without it, anybody could impersonate Slack.")
        if self.mode == "socket" and not self.app_token:
            raise SettingsError("Socket Mode needs SLACK_APP_TOKEN, or set SLACK_MODE=http.")

    def __repr__(self) -> str:
        return f"SlackOptions(mode={self.mode!r}, streaming={self.streaming!r}, api_url={self.api_url!r})"


class SlackAdapter:
    """One workspace that citebot is in."""

    def __init__(self, options: SlackOptions, client: SlackClient, identity: BotIdentity, clock: Clock) -> None:
        self.identity = identity
        self._options = options
        self._client = client
        self._clock = clock
        self._sockets: Sequence[Socket] = ()
        self._token_monitor = TokenMonitor(client, options.app_token, self._is_connected, clock)
        self._count_loss: CountLoss = ignore_loss
        self._event_limit = EventLimit(clock, lambda: self._count_loss("rate_limited"))
        self._ephemeral = SlackEphemeralMessages(client)
        self._channels = SharedChannels(client, clock)
        self.platform = SlackPlatform(
            client, identity, self._ephemeral, streaming=options.streaming, rates=options.rates
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, options: SlackOptions, clock: Clock) -> AsyncIterator[Self]:
        """Open the client as the bot token's owner; raises a `ChatError` if Slack refuses it."""
        async with open_client(options.bot_token, clock, base_url=options.api_url) as client:
            yield cls(options, client, await client.identity(), clock)

    async def unready(self) -> str:
        """Explain why no events arrive from Slack at the moment; empty if they do."""
        if self._token_monitor.refusal or await self._is_connected():
            return self._token_monitor.refusal
        return "Slack: no connection is open. citebot keeps trying; see the log, and status.slack.com."

    def remark(self) -> str:
        """Return remarks worth knowing although all is well."""
        return self._event_limit.remark()

    async def _is_connected(self) -> bool:
        """Whether events can arrive."""
        return self._options.mode == "http" or any([await socket.is_connected() for socket in self._sockets])

    @asynccontextmanager
    async def listen(
        self,
        conversations: Conversations,
        repositories: Repositories,
        access: AccessPolicy,
        server: LatePostRoutes | None = None,
        count_loss: CountLoss = ignore_loss,
    ) -> AsyncIterator[None]:
        """Receive events while the context is open; in HTTP mode at a path of the server."""
        self._count_loss = count_loss
        listener = SlackListener(
            client=self._client,
            identity=self.identity,
            platform=self.platform,
            ephemeral=self._ephemeral,
            channels=self._channels,
            conversations=conversations,
            home=HomeTab(repositories, access, self._clock),
            event_limit=self._event_limit,
        )
        app = listener.app()
        async with listener.open(), self._open_transport(app, server), run_in_background(self._token_monitor.watch()):
            yield

    @asynccontextmanager
    async def _open_transport(self, app: AsyncApp, server: LatePostRoutes | None) -> AsyncIterator[None]:
        options = self._options
        if options.mode == "socket":
            async with open_sockets(
                app, self._client, options.app_token,
                connections=options.connections, ping_interval=options.ping_interval,
                count_malformed=partial(self._count_loss, "malformed"),
            ) as self._sockets:  # fmt: skip
                yield
            return
        if server is None:
            raise ValueError("HTTP mode needs an HTTP server.")
        malformed = partial(self._count_loss, "malformed")
        server.add_post(PATH, make_endpoint(app, options.signing_secret, count_malformed=malformed))
        yield
