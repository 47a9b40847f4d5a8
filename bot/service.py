"""Serves a team: every platform whose tokens are set, over one conversation core, until the process is ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from bot.adapters.slack.workspace import Slack, SlackOptions
from bot.app import Team
from bot.chat import FILE, ChatPolicy, open_chat
from bot.clock import Clock, SystemClock
from bot.conversations import Conversations
from bot.errors import SettingsError, Unreachable
from bot.settings import Settings
from bot.usage import Limits
from bot.web import application, served
from indexer.models import Progress

T = TypeVar("T")
Say = Callable[[str], None]

NO_PLATFORM = (
    "There is no platform to serve. Set SLACK_BOT_TOKEN and SLACK_APP_TOKEN (README, Slack); `citebot doctor` tells "
    "what is missing. Without a platform, `citebot chat` answers in the terminal."
)
GRACE_SECONDS = 30.0  # what an answer may take beyond its model and its searches
_LONGEST_PAUSE = 60.0

log = logging.getLogger(__name__)


class Logged:
    """A display for a process that nobody watches: what is worth knowing is logged."""

    @contextmanager
    def indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:  # noqa: ARG002 - the port's
        """Show nothing meanwhile."""
        yield lambda _: None

    def note(self, text: str) -> None:
        """Log a remark."""
        log.warning("%s", text)


async def serve(settings: Settings, repository: Path, say: Say) -> None:
    """Serve until cancelled; the answers under way are then finished, or handed over to the next process."""
    slack = slack_options(settings)
    async with Team.open(settings, repository, Logged()) as team, _in_slack(slack, settings, team) as where:
        say(f"{where} Repositories: {', '.join(team.library.names())}. Ctrl-C ends it.")
        await asyncio.Event().wait()


def slack_options(settings: Settings) -> SlackOptions:
    """Say how Slack is reached; raises `SettingsError` where a token is missing."""
    if settings.slack_bot_token is None:
        raise SettingsError(NO_PLATFORM)
    return SlackOptions(
        bot_token=settings.slack_bot_token.get_secret_value(),
        app_token=settings.slack_app_token.get_secret_value() if settings.slack_app_token else "",
        signing_secret=settings.slack_signing_secret.get_secret_value() if settings.slack_signing_secret else "",
        mode=settings.slack_mode,
        streaming=settings.slack_streaming,
        api_url=settings.slack_api_base_url or SlackOptions.api_url,
    )


@asynccontextmanager
async def _in_slack(options: SlackOptions, settings: Settings, team: Team) -> AsyncIterator[str]:
    """Be in Slack for as long as the context is open; yields a sentence that says where."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        slack = await _reached(lambda: Slack.open(options, clock), stack, clock)
        conversations = await stack.enter_async_context(_conversations(slack, settings, team, clock))
        server = application()
        listening = lambda: slack.listening(conversations, team.library, settings.access, server)  # noqa: E731
        await _reached(listening, stack, clock)
        where = f"In Slack as @{slack.identity.name} of {slack.identity.workspace}"
        if options.mode == "http":
            address = served(server, host=settings.web_host, port=settings.web_port)
            where += f", listening at {await stack.enter_async_context(address)}"
        yield f"{where}."


@asynccontextmanager
async def _conversations(slack: Slack, settings: Settings, team: Team, clock: Clock) -> AsyncIterator[Conversations]:
    platforms = {"slack": slack.platform}
    policy = chat_policy(settings, team)
    async with (
        open_chat(platforms, team.agent, team.library, path=settings.home / FILE, policy=policy, clock=clock) as core,
        core.open(),
    ):
        yield core


def chat_policy(settings: Settings, team: Team) -> ChatPolicy:
    """What the operator decided."""
    return ChatPolicy(
        hosts=team.hosts,
        access=settings.access,
        limits=Limits(per_minute=settings.questions_per_minute, per_day=settings.questions_per_day),
        max_concurrent=settings.max_concurrent_answers,
        deadline=settings.max_seconds + GRACE_SECONDS,
    )


async def _reached(opening: Callable[[], AbstractAsyncContextManager[T]], stack: AsyncExitStack, clock: Clock) -> T:
    """Open what needs a platform, as often as that is away; what it refuses is not tried again."""
    pause = 1.0
    while True:
        try:
            return await stack.enter_async_context(opening())
        except Unreachable as error:
            log.warning("%s Trying again in %g seconds.", error, pause)
        await clock.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
