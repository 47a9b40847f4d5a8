"""Serves a team: every platform whose tokens are set, over one conversation core, until the process is ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from aiohttp import web

from bot.app import Stock, Team
from bot.beside import beside
from bot.chat import FILE, ChatPolicy, open_chat
from bot.clock import Clock, SystemClock
from bot.errors import Unreachable
from bot.retention import Retention, swept_daily
from bot.settings import Settings
from bot.usage import Limits
from bot.watched import Watched
from bot.web import application, served
from bot.webhooks.endpoint import push_webhook
from bot.workplaces import Ear, Workplace, openings
from indexer.models import Progress

T = TypeVar("T")
Say = Callable[[str], None]

GRACE_SECONDS = 30.0  # what an answer may take beyond its model and its searches
PUSHES = "/webhooks/push"
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
    opening, clock = openings(settings), SystemClock()
    async with Team.open(settings, repository, Logged()) as team, AsyncExitStack() as stack:
        await stack.enter_async_context(beside(team.stock.watcher.run()))
        places = {name: await _reached(partial(each, clock), stack, clock) for name, each in opening.items()}
        where = await stack.enter_async_context(_present(places, settings, team, clock))
        await stack.enter_async_context(swept_daily(retention(settings, team).sweep, clock))
        say(f"{where} Repositories: {', '.join(team.stock.library.names())}. Ctrl-C ends it.")
        await asyncio.Event().wait()


def retention(settings: Settings, team: Team) -> Retention:
    """What is swept of the data folder, day by day."""
    return Retention(home=settings.home, days=settings.retention_days, clock=SystemClock(), indexes=team.stock.library)


@asynccontextmanager
async def _present(places: Mapping[str, Workplace], settings: Settings, team: Team, clock: Clock) -> AsyncIterator[str]:
    """Hear and answer people on all platforms for as long as the context is open; yields a sentence that says where."""
    repositories = Watched(team.stock.library, team.stock.watcher)
    platforms = {name: place.platform for name, place in places.items()}
    policy, server = chat_policy(settings, team), _server(settings, team.stock, clock)
    async with AsyncExitStack() as stack:
        conversations = await stack.enter_async_context(
            open_chat(platforms, team.agent, repositories, path=settings.home / FILE, policy=policy, clock=clock)
        )
        await stack.enter_async_context(conversations.open())
        ear = Ear(conversations=conversations, repositories=repositories, access=settings.access, server=server)
        for place in places.values():
            await _reached(partial(place.hear, ear), stack, clock)
        where = f"In {' and '.join(place.where for place in places.values())}"
        if server.router.resources():
            address = served(server, host=settings.web_host, port=settings.web_port)
            where += f", listening at {await stack.enter_async_context(address)}"
        yield f"{where}."


def _server(settings: Settings, stock: Stock, clock: Clock) -> web.Application:
    """Make the application, with the address that hosts post pushes to where they can be told from strangers."""
    server = application()
    if settings.webhook_secret is not None:
        handler = push_webhook(stock.remotes, [settings.webhook_secret], stock.watcher.notify, clock)
        server.router.add_post(PUSHES, handler)
    return server


def chat_policy(settings: Settings, team: Team) -> ChatPolicy:
    """What the operator decided."""
    return ChatPolicy(
        hosts=team.stock.hosts,
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
