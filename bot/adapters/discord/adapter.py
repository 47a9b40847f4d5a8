"""Opens Discord: its commands, its platform for replies and its listener; and lists gaps in its set-up."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, cast

import aiohttp
import discord
from tenacity import stop_after_attempt, wait_chain, wait_fixed

from bot.access import AccessPolicy
from bot.adapters.discord.api_errors import map_post_errors
from bot.adapters.discord.channels import ChannelDirectory
from bot.adapters.discord.client import GatewayClient, override_api_url
from bot.adapters.discord.connection import NO_CONTENT, PORTAL, CallPacer, log_in, stay_connected
from bot.adapters.discord.ephemeral import DiscordEphemeralMessages
from bot.adapters.discord.interactions import InteractionHandler
from bot.adapters.discord.listener import DiscordListener, MemberDirectory
from bot.adapters.discord.parsing import describe_commands, has_changed_commands
from bot.adapters.discord.platform import RATES, DiscordPlatform
from bot.adapters.discord.reply_targets import ReplyTargets
from bot.adapters.file_downloads import get_origin
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.errors import ChatError, PlatformUnreachable, RateLimited, SettingsError
from bot.messages import IncomingMessage, RateLimit, SendMethod
from bot.monitoring.observer import CountLoss, ignore_loss
from bot.ports import Repositories
from bot.tasks import retry_while_away, run_in_background

PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)  # seconds between tries where Discord does not answer
log = logging.getLogger(__name__)
HOW_TO_ADD = (
    f"{PORTAL} > New Application > Bot: Reset Token, set DISCORD_TOKEN to the token it shows, and switch Message "
    "Content "
    "Intent on. Then `citebot doctor` shows the address that invites the bot to a server."
)
WITHOUT_CONTENT = (
    "Message Content Intent is not asked for: citebot answers mentions, direct messages and commands, and has to be "
    "mentioned in threads as well."
)
ANYBODY = (
    "Anybody can invite the bot to a server of their own and ask it there. Open the app at "
    f"{PORTAL}, choose Bot, and switch Public Bot off; or set DISCORD_SERVERS to the ids of your servers."
)


@dataclass(frozen=True, kw_only=True)
class DiscordOptions:
    """The connection to Discord. Empty addresses are Discord's own; a proxy has its own, such as
    `http://127.0.0.1:4020/api/v10`.

    Without `message_content` the bot receives only mentions, direct messages, commands. `servers`
    are the ids of those that count as inside; by default, all that the bot was invited to. Discord
    asks for `identify_pause` seconds between two sessions; after `settle_seconds` without another
    server, the list counts as complete, and direct conversations are searched. Neither delays a
    start. `mask` takes secrets out of text.
    """

    token: str = field(repr=False)
    api_url: str = ""
    gateway_url: str = ""
    message_content: bool = True
    servers: tuple[str, ...] = ()
    mask: Callable[[str], str] = str
    settle_seconds: float = 2.0
    identify_pause: float = 5.0
    rates: Mapping[SendMethod, RateLimit] = field(default_factory=lambda: RATES)

    def __post_init__(self) -> None:
        if not self.token.strip():
            raise SettingsError(f"DISCORD_TOKEN is empty. Copy the token from Bot > Reset Token at {PORTAL}.")


class DiscordAdapter:
    """The bot in all its servers."""

    def __init__(
        self, client: GatewayClient, options: DiscordOptions, clock: Clock, session: aiohttp.ClientSession
    ) -> None:
        self._client = client
        self._options = options
        self._clock = clock
        self._channels = ChannelDirectory(client)
        pacer = CallPacer(clock)
        self._reply_targets = ReplyTargets(client, pacer, options.mask)
        self._members = MemberDirectory(client, clock, options.servers)
        ephemeral = DiscordEphemeralMessages(client, clock)
        self.platform = DiscordPlatform(
            client,
            channels=self._channels,
            reply_targets=self._reply_targets,
            ephemeral=ephemeral,
            pacer=pacer,
            clock=clock,
            session=session,
            origins=[get_origin(options.api_url)] if options.api_url else (),
            rates=options.rates,
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, options: DiscordOptions, clock: Clock) -> AsyncIterator[Self]:
        """Open the client as the token's owner; raises a `BotError` if Discord refuses it.

        The addresses hold for all clients of a process while this is open.
        """
        client = GatewayClient(
            message_content=options.message_content,
            settle_seconds=options.settle_seconds,
            identify_pause=options.identify_pause,
        )
        with override_api_url(options.api_url, options.gateway_url):
            async with log_in(client, options.token), aiohttp.ClientSession() as session:
                yield cls(client, options, clock, session)

    @property
    def name(self) -> str:
        """The bot's name."""
        return str(self._client.user or "")

    @property
    def is_connected(self) -> bool:
        """Whether the gateway has accepted the bot, and has listed its servers."""
        return self._client.is_ready()

    async def unready(self) -> str:
        """Explain why no events arrive from Discord at the moment; empty if they do."""
        if self._client.in_session.is_set() and not self._client.is_closed():
            return ""
        return "Discord: the gateway is not connected. citebot keeps trying; see the log, and discordstatus.com."

    async def list_problems(self) -> Sequence[str]:
        """List the missing switches and permissions, each with where to click; raises `ChatError`s."""
        options = self._options
        return await list_problems(self._client, message_content=options.message_content, servers=options.servers)

    @asynccontextmanager
    async def listen(
        self,
        conversations: Conversations,
        repositories: Repositories,
        access: AccessPolicy,
        count_loss: CountLoss = ignore_loss,
    ) -> AsyncIterator[None]:
        """Receive events while the context is open, after the gateway has accepted the bot."""
        self._client.count_loss = count_loss
        async with run_in_background(self.run(conversations, repositories, access)):
            await self._client.in_session.wait()
            yield

    async def run(self, conversations: Conversations, repositories: Repositories, access: AccessPolicy) -> None:
        """Receive events until cancelled; raises a `BotError` if Discord refuses the bot for good."""

        def list_visible(message: IncomingMessage) -> Sequence[str]:
            return access.list_visible(message, repositories.list_names())

        self._client.listener = DiscordListener(
            client=self._client,
            channels=self._channels,
            reply_targets=self._reply_targets,
            members=self._members,
            conversations=conversations,
            clock=self._clock,
        )
        self._client.interactions = InteractionHandler(
            channels=self._channels,
            reply_targets=self._reply_targets,
            members=self._members,
            conversations=conversations,
            visible=list_visible,
            may_reindex=access.may_reindex,
            clock=self._clock,
        )
        try:
            async with run_in_background(keep_registering(self._client, self._clock)):
                await stay_connected(self._client, self._clock)
        finally:
            await self._client.finish()


async def keep_registering(client: discord.Client, clock: Clock) -> None:
    """Update the commands, with a few retries if Discord does not answer or asks to wait."""
    retrying = retry_while_away(
        clock,
        wait=wait_chain(*map(wait_fixed, PAUSES)),
        stop=stop_after_attempt(len(PAUSES) + 1),
        report=partial(log.warning, "the commands are not registered yet: %s Trying again in %g seconds."),
    )
    try:
        await retrying(register_commands, client)
    except (RateLimited, PlatformUnreachable) as error:
        log.warning("the commands were not registered: %s Restart citebot to try again.", error)
    except ChatError as error:
        log.warning("the commands were not registered: %s", error)


async def register_commands(client: discord.Client) -> bool:
    """Update the commands; True if they changed. Until then the old ones keep working."""
    application, wanted = client.application_id or 0, describe_commands()
    with map_post_errors():
        present = await client.http.get_global_commands(application)
        if not has_changed_commands(wanted, cast("Any", present)):
            return False
        await client.http.bulk_upsert_global_commands(application, cast("Any", list(wanted)))
    return True


async def list_problems(client: discord.Client, *, message_content: bool, servers: Collection[str]) -> Sequence[str]:
    """List the problems, each as a sentence that says where to click; raises `ChatError`s."""
    with map_post_errors():
        found = [str(guild.id) async for guild in client.fetch_guilds(with_counts=False)]
    flags = client.application_flags
    granted = flags.gateway_message_content or flags.gateway_message_content_limited
    content = WITHOUT_CONTENT if not message_content else "" if granted else NO_CONTENT
    nowhere = "" if found else f"The bot is not in any server. Invite it: {make_invite_url(client)}"
    missing = [
        f"The bot is not in the server {server}. Invite it: {make_invite_url(client)}"
        for server in servers
        if found and server not in found
    ]
    public = ANYBODY if client.application is not None and client.application.bot_public and not servers else ""
    return [sentence for sentence in (content, public, nowhere, *missing) if sentence]


def make_invite_url(client: discord.Client) -> str:
    """Return the address at which a server's manager invites the bot with its permissions."""
    needed = discord.Permissions(
        view_channel=True, send_messages=True, send_messages_in_threads=True, create_public_threads=True,
        read_message_history=True, attach_files=True, add_reactions=True,
    )  # fmt: skip
    scopes = ("bot", "applications.commands")
    return discord.utils.oauth_url(client.application_id or 0, permissions=needed, scopes=scopes)
