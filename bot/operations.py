"""Opens what a process is looked after by: metrics that follow the agent, health, the web server with its probes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bot.app import TeamApp, make_redactor
from bot.clock import Clock
from bot.connections import Connections
from bot.errors import SettingsError
from bot.health import Health
from bot.metrics import ConversationMetrics
from bot.probes import ProbeHandlers
from bot.run_metrics import RunMetrics
from bot.settings import Settings
from bot.web import LatePostRoutes, make_application, run_http_server

LOOPBACK = "127.0.0.1"
MOST_LOCAL = 32  # connections of those who look after the process

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServiceMonitoring:
    """What the platforms report to, and the doors that they hear through; an address is empty where nothing listens.

    `metrics_address` is reached from this machine alone.
    """

    metrics: ConversationMetrics
    health: Health
    probes: ProbeHandlers
    doors: LatePostRoutes
    address: str
    metrics_address: str


@asynccontextmanager
async def open_monitoring(
    settings: Settings, team: TeamApp, clock: Clock, *, platforms: Sequence[str], doors: Sequence[str]
) -> AsyncIterator[ServiceMonitoring]:
    """Open everything; `doors` are the paths that platforms hear through, without any the server may be missing.

    Raises `SettingsError` where doors are wanted and nothing can listen.
    """
    metrics = ConversationMetrics()
    watcher = team.stock.watcher
    health = Health(
        platforms, team.stock.library, clock, watched=lambda: {each.repository: each for each in watcher.status()}
    )
    token = settings.metrics_token.get_secret_value() if settings.metrics_token else ""
    probes = ProbeHandlers(health=health, metrics=metrics, clock=clock, mask=make_redactor(settings), token=token)
    entrance = LatePostRoutes()
    server, local = make_application(), make_application()
    probes.join(server)
    probes.join_local(local)
    for path in doors:
        server.router.add_post(path, entrance.receive)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_following(team, RunMetrics(metrics.registry, settings.prices)))
        connections = Connections(count_closed=metrics.count_closed)
        listening = run_http_server(server, host=settings.web_host, port=settings.web_port, connections=connections)
        address = await _enter(stack, listening, "/healthz and /readyz", needed=bool(doors))
        listening = run_http_server(
            local, host=LOOPBACK, port=settings.metrics_port, connections=Connections(most=MOST_LOCAL),
            advice="Set CITEBOT_METRICS_PORT (0 takes any port that is free).",
        )  # fmt: skip
        metrics_address = await _enter(stack, listening, "/metrics and the whole of /readyz", needed=False)
        yield ServiceMonitoring(
            metrics=metrics, health=health, probes=probes, doors=entrance,
            address=address, metrics_address=metrics_address,
        )  # fmt: skip


async def _enter(
    stack: AsyncExitStack, listening: AbstractAsyncContextManager[str], missing: str, *, needed: bool
) -> str:
    """Begin to listen, and return where; nowhere, with a warning, where that fails and is not needed."""
    try:
        return await stack.enter_async_context(listening)
    except SettingsError as error:
        if needed:
            raise
        log.warning("%s Until then %s are missing; questions are answered.", error, missing)
        return ""


@asynccontextmanager
async def _following(team: TeamApp, runs: RunMetrics) -> AsyncIterator[None]:
    """Count what the agent does for as long as the context is open."""
    with team.events.subscribe() as events:
        task = asyncio.create_task(runs.follow(events))
        task.add_done_callback(_log_stop)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


def _log_stop(task: asyncio.Task[None]) -> None:
    """Say it where runs are counted no more; they go on."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("Runs are not counted any more.", exc_info=error)
