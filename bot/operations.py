"""Opens what a process is looked after by: metrics that follow the agent, health, the web server with its probes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bot.app import Team, masking
from bot.clock import Clock
from bot.errors import SettingsError
from bot.health import Health
from bot.metrics import Metrics
from bot.probes import Probes
from bot.run_metrics import RunMetrics
from bot.settings import Settings
from bot.web import Doors, application, served

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Operations:
    """What the platforms report to, and the doors that they hear through; no `address` where nothing listens."""

    metrics: Metrics
    health: Health
    probes: Probes
    doors: Doors
    address: str


@asynccontextmanager
async def open_operations(
    settings: Settings, team: Team, clock: Clock, *, platforms: Sequence[str], doors: Sequence[str]
) -> AsyncIterator[Operations]:
    """Open everything; `doors` are the paths that platforms hear through, without any the server may be missing.

    Raises `SettingsError` where doors are wanted and nothing can listen.
    """
    metrics = Metrics()
    watcher = team.stock.watcher
    health = Health(
        platforms, team.stock.library, clock, watched=lambda: {each.repository: each for each in watcher.status()}
    )
    probes = Probes(health=health, metrics=metrics, clock=clock, mask=masking(settings))
    entrance = Doors()
    server = application()
    probes.join(server)
    for path in doors:
        server.router.add_post(path, entrance.receive)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_following(team, RunMetrics(metrics.registry, settings.prices)))
        try:
            listening = served(server, host=settings.web_host, port=settings.web_port)
            address = await stack.enter_async_context(listening)
        except SettingsError as error:
            if doors:
                raise
            address = ""
            log.warning("%s Until then /healthz, /readyz and /metrics are missing; questions are answered.", error)
        yield Operations(metrics=metrics, health=health, probes=probes, doors=entrance, address=address)


@asynccontextmanager
async def _following(team: Team, runs: RunMetrics) -> AsyncIterator[None]:
    """Count what the agent does for as long as the context is open."""
    with team.events.subscribe() as events:
        task = asyncio.create_task(runs.follow(events))
        task.add_done_callback(_stopped)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


def _stopped(task: asyncio.Task[None]) -> None:
    """Say it where runs are counted no more; they go on."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("Runs are not counted any more.", exc_info=error)
