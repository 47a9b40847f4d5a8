"""The platforms: how the settings open each, and how it receives messages.

Each is imported only when it is opened, because an import takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.access import AccessPolicy
from bot.app import make_redactor
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.errors import SettingsError
from bot.monitoring.observer import Loss
from bot.ports import ChatPlatform, Repositories
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.adapters.discord.adapter import DiscordOptions
    from bot.adapters.slack.adapter import SlackOptions
    from bot.http.server import LatePostRoutes

NO_PLATFORM = (
    "No chat platform is configured, so no questions will be answered yet: set SLACK_BOT_TOKEN and "
    "SLACK_APP_TOKEN (docs/slack.md), or "
    "DISCORD_TOKEN (docs/discord.md)."
)
HALF_SLACK = (
    "{given} is set, but SLACK_BOT_TOKEN is not, so Slack cannot be served. Set it as well (docs/slack.md), or "
    "remove {given} to serve without Slack."
)


@dataclass(frozen=True, kw_only=True)
class PlatformContext:
    """The receivers of a platform's events: the conversations, and the server that its requests come in at."""

    conversations: Conversations
    repositories: Repositories
    access: AccessPolicy
    server: LatePostRoutes
    count_loss: Callable[[str, Loss], None]


@dataclass(frozen=True, kw_only=True)
class PlatformConnection:
    """A platform that citebot is on. It receives messages while the context of `hear` is open.

    `unready` returns why it cannot receive any at the moment; empty if it can. `remark` returns what is worth knowing
    all the same. With `is_dialled` citebot opens the connection that events come by, which one process at a time does.
    """

    platform: ChatPlatform
    where: str
    unready: Callable[[], Awaitable[str]]
    remark: Callable[[], str] = str
    hear: Callable[[PlatformContext], AbstractAsyncContextManager[None]]
    is_dialled: bool = True


@dataclass(frozen=True, kw_only=True)
class PlatformFactory:
    """Opens a platform, and names the paths at which it posts events."""

    open: Callable[[Clock], AbstractAsyncContextManager[PlatformConnection]]
    doors: Sequence[str] = ()


def list_platforms(settings: Settings) -> Mapping[str, PlatformFactory]:
    """Return how each platform with a token is opened, by name; raises `SettingsError` if part of one is missing."""
    found: dict[str, PlatformFactory] = {}
    if settings.slack_bot_token is not None:
        from bot.adapters.slack.endpoint import PATH

        options = read_slack_options(settings)
        found["slack"] = PlatformFactory(
            open=partial(_open_slack, options), doors=[PATH] if options.mode == "http" else []
        )
    if settings.discord_token is not None:
        found["discord"] = PlatformFactory(open=partial(_open_discord, read_discord_options(settings)))
    given = "SLACK_APP_TOKEN" if settings.slack_app_token else "SLACK_SIGNING_SECRET"
    if not found and (settings.slack_app_token or settings.slack_signing_secret):
        raise SettingsError(HALF_SLACK.format(given=given))
    return found


def read_slack_options(settings: Settings) -> SlackOptions:
    """Read how Slack is reached."""
    from bot.adapters.slack.adapter import SlackOptions

    return SlackOptions(
        bot_token=settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else "",
        app_token=settings.slack_app_token.get_secret_value() if settings.slack_app_token else "",
        signing_secret=settings.slack_signing_secret.get_secret_value() if settings.slack_signing_secret else "",
        mode=settings.slack_mode,
        streaming=settings.slack_streaming,
        api_url=settings.slack_api_base_url or SlackOptions.api_url,
    )


@asynccontextmanager
async def _open_slack(options: SlackOptions, clock: Clock) -> AsyncIterator[PlatformConnection]:
    from bot.adapters.slack.adapter import SlackAdapter

    async with SlackAdapter.open(options, clock) as slack:
        yield PlatformConnection(
            platform=slack.platform,
            where=f"Slack as @{slack.identity.name} of {slack.identity.workspace}",
            unready=slack.unready,
            remark=slack.remark,
            hear=lambda ear: slack.listen(
                ear.conversations, ear.repositories, ear.access, ear.server, partial(ear.count_loss, "slack")
            ),
            is_dialled=options.mode == "socket",
        )


def read_discord_options(settings: Settings) -> DiscordOptions:
    """Read how Discord is reached."""
    from bot.adapters.discord.adapter import DiscordOptions

    return DiscordOptions(
        token=settings.discord_token.get_secret_value() if settings.discord_token else "",
        api_url=settings.discord_api_base_url or "",
        gateway_url=settings.discord_gateway_url or "",
        message_content=settings.discord_message_content == "on",
        servers=settings.discord_servers,
        mask=make_redactor(settings),
    )


@asynccontextmanager
async def _open_discord(options: DiscordOptions, clock: Clock) -> AsyncIterator[PlatformConnection]:
    from bot.adapters.discord.adapter import DiscordAdapter

    async with DiscordAdapter.open(options, clock) as discord:
        yield PlatformConnection(
            platform=discord.platform,
            where=f"Discord as {discord.name}",
            unready=discord.unready,
            hear=lambda ear: discord.listen(
                ear.conversations, ear.repositories, ear.access, partial(ear.count_loss, "discord")
            ),
        )
