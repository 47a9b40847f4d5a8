"""The platforms: how the settings open each, how it receives messages, and how it is kept connected.

Each is imported only when it is opened, because an import takes a quarter of a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tenacity import wait_exponential

from bot.access import AccessPolicy
from bot.app import make_redactor
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.errors import ChatError, SettingsError
from bot.monitoring.health import Health
from bot.monitoring.observer import Loss
from bot.ports import ChatPlatform, Repositories
from bot.settings import Settings
from bot.storage.leases import Lease, Leases
from bot.tasks import retry_while_away

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
T = TypeVar("T")
Announce = Callable[[str], None]
LONGEST_PAUSE = 60.0
SENDS_ONLY = "This process answers; others receive."
STANDS_BY = "Another process receives at the moment; this one is on standby."
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PlatformContext:
    """The receivers of a platform's events: the conversations, and the server for its requests."""

    conversations: Conversations
    repositories: Repositories
    access: AccessPolicy
    server: LatePostRoutes
    count_loss: Callable[[str, Loss], None]


@dataclass(frozen=True, kw_only=True)
class PlatformConnection:
    """A connected platform. It receives messages while the context of `hear` is open.

    `unready` returns why it cannot receive any at the moment; empty if it can. `remark` returns
    other useful information. With `is_dialled` citebot opens the connection for events, in one
    process at a time.
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
    """Return the factory of each platform with a token, by name; raises `SettingsError` for incomplete settings."""
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
    """Read the connection settings of Slack."""
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
    """Read the connection settings of Discord."""
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


class PlatformSupervisor:
    """Serves each platform separately, so that a failure of one delays no other.

    An unreachable platform is tried again without end. One that refuses citebot is not: a refusal
    at the first try is a mistake in the settings, which ends everything; a later one ends only that
    platform, unless no other is left. If several processes serve a platform, one at a time
    connects, and the others stand by. One that receives no events only sends.
    """

    def __init__(
        self,
        openings: Mapping[str, PlatformFactory],
        context: PlatformContext,
        health: Health,
        clock: Clock,
        *,
        say: Announce,
        greeting: str = "",
        leases: Leases | None = None,
        takes_events: bool = True,
    ) -> None:
        self._openings = openings
        self._context = context
        self._health = health
        self._clock = clock
        self._say = say
        self._greeting = greeting  # goes with the first announcement
        self._leases = leases
        self._takes_events = takes_events
        self._left = set(openings)  # those that did not refuse
        self._tried: set[str] = set()  # those whose first try is over

    async def run(self) -> None:
        """Serve people until this is cancelled; raises errors of platforms in a group."""
        async with asyncio.TaskGroup() as group:
            for name, opening in self._openings.items():
                group.create_task(self._serve_platform(name, opening))

    async def _serve_platform(self, name: str, opening: PlatformFactory) -> None:
        """Open a platform, continue with what was left there, and serve it for as long as it lets citebot in."""
        try:
            async with AsyncExitStack() as stack:
                connection = await self._open_with_retry(name, partial(opening.open, self._clock), stack)
                await stack.enter_async_context(self._context.conversations.connect_platform(name, connection.platform))
                if not self._takes_events:
                    self._stand_by(name, SENDS_ONLY)
                    self._announce(name, connection)
                    await asyncio.Event().wait()
                while True:
                    await self._receive(name, connection)
        except (SettingsError, ChatError) as error:
            self._left.discard(name)
            if name not in self._tried or not self._left:
                raise
            reason = f"{error} Then start citebot again: until then {name} is not served, and the others are."
            log.error("%s", reason)  # noqa: TRY400 - the sentence says everything
            self._health.set_waiting(name, reason)

    async def _receive(self, name: str, connection: PlatformConnection) -> None:
        """Receive messages until that is another process's to do."""
        async with AsyncExitStack() as stack:
            lease = Lease()
            if connection.is_dialled and self._leases is not None:
                self._stand_by(name, STANDS_BY)
                lease = await stack.enter_async_context(self._leases.hold(f"platform {name}"))
            # Before it receives anything it knows what it waits for.
            self._health.set_listening(name, connection.unready, connection.remark)
            await self._open_with_retry(name, partial(connection.hear, self._context), stack)
            self._health.set_listening(name, connection.unready, connection.remark)
            self._announce(name, connection)
            await lease.lost.wait()

    def _stand_by(self, name: str, remark: str) -> None:
        """Be ready without receiving anything."""

        async def find_nothing() -> str:
            return ""

        self._health.set_listening(name, find_nothing, lambda: remark)

    def _announce(self, name: str, connection: PlatformConnection) -> None:
        self._tried.add(name)
        self._say(f"In {connection.where}.{self._greeting}")
        self._greeting = ""

    async def _open_with_retry(
        self, name: str, opening: Callable[[], AbstractAsyncContextManager[T]], stack: AsyncExitStack
    ) -> T:
        """Open what needs a platform; while that is away, try again, no sooner than it asks for."""

        async def enter() -> T:
            return await stack.enter_async_context(opening())

        def report(error: Exception, wait: float) -> None:
            self._tried.add(name)
            self._health.set_waiting(name, str(error))
            log.warning("%s Trying again in %g seconds.", error, wait)

        retrying = retry_while_away(self._clock, wait=wait_exponential(max=LONGEST_PAUSE), report=report)
        return await retrying(enter)
