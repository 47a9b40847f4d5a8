"""Serves a team: every platform whose tokens are set, over one conversation core, until the process is ended.

Without any platform the rest is served: repositories are watched, pushes are taken, and metrics shown.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bot.app import TeamApp, make_redactor
from bot.clock import Clock, SystemClock
from bot.conversations.assembly import ChatPolicy, open_conversations
from bot.maintenance.retention import Retention, run_daily_sweep
from bot.monitoring.watchdog import watch_loop
from bot.repositories.library import WatchedRepositories
from bot.serving.http_server import ServiceMonitoring, open_monitoring
from bot.serving.platforms import NO_PLATFORM, PlatformContext, list_platforms
from bot.serving.supervisor import Announce, PlatformSupervisor
from bot.settings import Settings
from bot.storage.database import INBOX_FILE
from bot.storage.rate_limits import QuestionLimits
from bot.tasks import run_in_background
from bot.webhooks.push_endpoint import make_push_handler
from indexer import Progress

GRACE_SECONDS = 30.0  # what an answer may take beyond its model and its searches
PUSHES = "/webhooks/push"

log = logging.getLogger(__name__)


class LoggingDisplay:
    """A display for a process that nobody watches: remarks are logged."""

    @contextmanager
    def indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:  # noqa: ARG002 - the port's
        """Show nothing meanwhile."""
        yield lambda _: None

    def note(self, text: str) -> None:
        """Log a remark."""
        log.warning("%s", text)


async def serve_team(settings: Settings, repository: Path, say: Announce) -> None:
    """Serve until cancelled; the answers under way are then finished, or handed over to the next process."""
    opening, clock = list_platforms(settings), SystemClock()
    doors = [path for factory in opening.values() for path in factory.doors]
    doors += [PUSHES] if settings.webhook_secret is not None else []
    async with (
        TeamApp.open(settings, repository, LoggingDisplay()) as team,
        open_monitoring(settings, team, clock, platforms=list(opening), doors=doors) as operations,
        _watch_repositories(settings, team, operations, clock),
        _open_conversations(settings, team, operations, clock) as context,
        run_daily_sweep(make_retention(settings, team).sweep, clock),
    ):
        listening = f" Listening at {operations.address}." if operations.address else ""
        metrics = f" Metrics at {operations.metrics_address}." if operations.metrics_address else ""
        greeting = f"{listening}{metrics} Repositories: {', '.join(team.stock.library.list_names())}. Ctrl-C ends it."
        if not opening:
            say(f"{describe_without_platform(settings)}{greeting}")
        supervisor = PlatformSupervisor(opening, context, operations.health, clock, say=say, greeting=greeting)
        # What stays until the end is left out of collections: one that goes over it holds every answer up for 0.1 s.
        gc.freeze()
        gc.enable()
        with watch_loop(limit=settings.stall_seconds, measure=operations.metrics.measure_stall):
            async with run_in_background(supervisor.run()):
                try:
                    await asyncio.Event().wait()
                finally:  # nothing more is accepted while the answers under way are finished
                    operations.health.set_ended()
                    operations.doors.close()


def describe_without_platform(settings: Settings) -> str:
    """Say what is not running where no platform is set up, and what is."""
    pushes = (
        "push webhooks are taken"
        if settings.webhook_secret is not None
        else "push webhooks are off until CITEBOT_WEBHOOK_SECRET is set"
    )
    return f"{NO_PLATFORM} New commits are indexed as they come; {pushes}."


def make_retention(settings: Settings, team: TeamApp) -> Retention:
    """What is swept of the data folder, day by day."""
    return Retention(home=settings.home, days=settings.retention_days, clock=SystemClock(), indexes=team.stock.library)


@asynccontextmanager
async def _watch_repositories(
    settings: Settings, team: TeamApp, operations: ServiceMonitoring, clock: Clock
) -> AsyncIterator[None]:
    """Watch the repositories; with a secret, hosts may report pushes too."""
    stock = team.stock
    if settings.webhook_secret is not None:
        handler = make_push_handler(stock.remotes, [settings.webhook_secret], stock.watcher.notify, clock)
        operations.doors.add_post(PUSHES, handler)
    async with run_in_background(stock.watcher.run()):
        yield


@asynccontextmanager
async def _open_conversations(
    settings: Settings, team: TeamApp, operations: ServiceMonitoring, clock: Clock
) -> AsyncIterator[PlatformContext]:
    """Open the conversations, and show their state to the probes."""
    repositories = WatchedRepositories(team.stock.library, team.stock.watcher)
    path, policy, metrics = settings.home / INBOX_FILE, make_chat_policy(settings, team), operations.metrics
    async with (
        open_conversations(team.agent, repositories, path=path, policy=policy, clock=clock, observer=metrics) as core,
        core.open(),
    ):
        operations.health.set_store(core.check_store)
        operations.probes.load = lambda: core.load
        try:
            yield PlatformContext(
                conversations=core,
                repositories=repositories,
                access=settings.access,
                server=operations.doors,
                count_loss=metrics.count_loss,
            )
        finally:
            operations.health.set_store(None)


def make_chat_policy(settings: Settings, team: TeamApp) -> ChatPolicy:
    """What the operator decided."""
    return ChatPolicy(
        hosts=team.stock.hosts,
        access=settings.access,
        signs=team.stock.signs,
        limits=QuestionLimits(per_minute=settings.questions_per_minute, per_day=settings.questions_per_day),
        max_concurrent=settings.max_concurrent_answers,
        deadline=settings.max_seconds + GRACE_SECONDS,
        manners={channel: table.manners for channel, table in settings.channels.items()},
        mask=make_redactor(settings),
    )
