"""Serves a team: every platform whose tokens are set, over one conversation core, until the process is ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from bot.app import Team, masking
from bot.beside import beside
from bot.chat import FILE, ChatPolicy, open_chat
from bot.clock import Clock, SystemClock
from bot.conversations import Conversations
from bot.errors import Unreachable
from bot.operations import Operations, open_operations
from bot.ports import Repositories
from bot.retention import Retention, swept_daily
from bot.settings import Settings
from bot.usage import Limits
from bot.watched import WatchedRepositories
from bot.webhooks.endpoint import push_webhook
from bot.workplaces import Ear, Opening, Workplace, openings
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
    async with (
        Team.open(settings, repository, Logged()) as team,
        open_operations(settings, team, clock, platforms=list(opening), doors=_doors(settings, opening)) as operations,
        _told_of_pushes(settings, team, operations, clock),
        _present(opening, settings, team, operations, clock) as where,
        swept_daily(retention(settings, team).sweep, clock),
    ):
        listening = f" Listening at {operations.address}." if operations.address else ""
        say(f"{where}{listening} Repositories: {', '.join(team.stock.library.names())}. Ctrl-C ends it.")
        await asyncio.Event().wait()


def retention(settings: Settings, team: Team) -> Retention:
    """What is swept of the data folder, day by day."""
    return Retention(home=settings.home, days=settings.retention_days, clock=SystemClock(), indexes=team.stock.library)


def _doors(settings: Settings, opening: Mapping[str, Opening]) -> list[str]:
    """The paths that others post to."""
    pushes = [PUSHES] if settings.webhook_secret is not None else []
    return [*(path for each in opening.values() for path in each.doors), *pushes]


@asynccontextmanager
async def _told_of_pushes(settings: Settings, team: Team, operations: Operations, clock: Clock) -> AsyncIterator[None]:
    """Watch the repositories; hosts may tell of pushes where they can be told from strangers."""
    stock = team.stock
    if settings.webhook_secret is not None:
        handler = push_webhook(stock.remotes, [settings.webhook_secret], stock.watcher.notify, clock)
        operations.doors.add_post(PUSHES, handler)
    async with beside(stock.watcher.run()):
        yield


@asynccontextmanager
async def _present(
    opening: Mapping[str, Opening], settings: Settings, team: Team, operations: Operations, clock: Clock
) -> AsyncIterator[str]:
    """Hear and answer people on all platforms for as long as the context is open; yields a sentence that says where."""
    health, repositories = operations.health, WatchedRepositories(team.stock.library, team.stock.watcher)
    async with AsyncExitStack() as stack:
        places: dict[str, Workplace] = {}
        for name, each in opening.items():
            places[name] = await _reached(partial(each.open, clock), stack, clock, partial(health.waits, name))
        core = await stack.enter_async_context(
            _answering(places, repositories, settings, team, operations=operations, clock=clock)
        )
        ear = Ear(conversations=core, repositories=repositories, access=settings.access, server=operations.doors)
        for name, place in places.items():
            await _reached(partial(place.hear, ear), stack, clock, partial(health.waits, name))
            health.hears(name, place.unready)
        stack.callback(operations.doors.close)
        stack.callback(health.ends)
        yield f"In {' and '.join(place.where for place in places.values())}."


@asynccontextmanager
async def _answering(
    places: Mapping[str, Workplace],
    repositories: Repositories,
    settings: Settings,
    team: Team,
    *,
    operations: Operations,
    clock: Clock,
) -> AsyncIterator[Conversations]:
    """Open the conversations over the platforms, and let those who look after the process see them."""
    platforms = {name: place.platform for name, place in places.items()}
    path, policy, metrics = settings.home / FILE, chat_policy(settings, team), operations.metrics
    async with (
        open_chat(platforms, team.agent, repositories, path=path, policy=policy, clock=clock, observer=metrics) as core,
        core.open(),
    ):
        operations.health.stores(core.check_store)
        operations.probes.load = lambda: core.load
        try:
            yield core
        finally:
            operations.health.stores(None)


def chat_policy(settings: Settings, team: Team) -> ChatPolicy:
    """What the operator decided."""
    return ChatPolicy(
        hosts=team.stock.hosts,
        access=settings.access,
        signs=team.stock.signs,
        limits=Limits(per_minute=settings.questions_per_minute, per_day=settings.questions_per_day),
        max_concurrent=settings.max_concurrent_answers,
        deadline=settings.max_seconds + GRACE_SECONDS,
        mask=masking(settings),
    )


async def _reached(
    opening: Callable[[], AbstractAsyncContextManager[T]],
    stack: AsyncExitStack,
    clock: Clock,
    wait: Callable[[str], None],
) -> T:
    """Open what needs a platform, as often as that is away; what it refuses is not tried again.

    `wait` is told why it is away.
    """
    pause = 1.0
    while True:
        try:
            return await stack.enter_async_context(opening())
        except Unreachable as error:
            wait(str(error))
            log.warning("%s Trying again in %g seconds.", error, pause)
        await clock.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
