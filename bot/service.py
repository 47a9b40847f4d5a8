"""Serves a team: every platform whose tokens are set, over one conversation core, until the process is ended."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bot.app import Team, masking
from bot.beside import beside
from bot.chat import FILE, ChatPolicy, open_chat
from bot.clock import Clock, SystemClock
from bot.operations import Operations, open_operations
from bot.presence import Presence, Say
from bot.retention import Retention, swept_daily
from bot.settings import Settings
from bot.usage import Limits
from bot.watchdog import watch_loop
from bot.watched import WatchedRepositories
from bot.webhooks.endpoint import push_webhook
from bot.workplaces import Ear, Opening, openings
from indexer.models import Progress

GRACE_SECONDS = 30.0  # what an answer may take beyond its model and its searches
PUSHES = "/webhooks/push"

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
        _answering(settings, team, operations, clock) as ear,
        swept_daily(retention(settings, team).sweep, clock),
    ):
        listening = f" Listening at {operations.address}." if operations.address else ""
        metrics = f" Metrics at {operations.metrics_address}." if operations.metrics_address else ""
        greeting = f"{listening}{metrics} Repositories: {', '.join(team.stock.library.names())}. Ctrl-C ends it."
        presence = Presence(opening, ear, operations.health, clock, say=say, greeting=greeting)
        _spare_the_collector()
        with watch_loop(limit=settings.stall_seconds, measure=operations.metrics.measure_stall):
            async with beside(presence.run()):
                await _until_ended(operations)


def _spare_the_collector() -> None:
    """Leave out what stays until the end: a collection that goes over all of it holds every answer up for 0.1 s."""
    gc.collect()
    gc.freeze()


async def _until_ended(operations: Operations) -> None:
    """Wait until this is cancelled; then take in nothing more while the answers under way are finished."""
    try:
        await asyncio.Event().wait()
    finally:
        operations.health.ends()
        operations.doors.close()


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
async def _answering(settings: Settings, team: Team, operations: Operations, clock: Clock) -> AsyncIterator[Ear]:
    """Open the conversations, and let those who look after the process see them."""
    repositories = WatchedRepositories(team.stock.library, team.stock.watcher)
    path, policy, metrics = settings.home / FILE, chat_policy(settings, team), operations.metrics
    async with (
        open_chat(team.agent, repositories, path=path, policy=policy, clock=clock, observer=metrics) as core,
        core.open(),
    ):
        operations.health.stores(core.check_store)
        operations.probes.load = lambda: core.load
        try:
            yield Ear(
                conversations=core,
                repositories=repositories,
                access=settings.access,
                server=operations.doors,
                count_loss=metrics.count_loss,
            )
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
