"""The monitoring of a process that serves, and the two servers that show it: one for others, one for this machine."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.routing import Route, Router

from bot.app import TeamApp, make_redactor
from bot.clock import Clock
from bot.errors import SettingsError
from bot.http.connections import Connections
from bot.http.server import LOOPBACK, LatePostRoutes, make_application, run_http_server
from bot.monitoring.health import Health, ProbeHandlers
from bot.monitoring.metrics import ConversationMetrics, RunMetrics
from bot.serving.cluster import Duties
from bot.settings import Settings

MAX_LOCAL = 32  # connections of those who look after the process

JoinServer = Callable[[Router], None]  # adds the paths of a surface to those of the server

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServiceMonitoring:
    """The monitoring of the platforms, and their paths; an address is empty if nothing listens.

    `metrics_address` is reachable only from this machine.
    """

    metrics: ConversationMetrics
    health: Health
    probes: ProbeHandlers
    doors: LatePostRoutes
    address: str
    metrics_address: str


@asynccontextmanager
async def open_monitoring(
    settings: Settings,
    team: TeamApp,
    clock: Clock,
    *,
    platforms: Sequence[str],
    doors: Sequence[str],
    duties: Duties,
    surfaces: Sequence[JoinServer] = (),
) -> AsyncIterator[ServiceMonitoring]:
    """Open the server and all monitoring; `doors` are the paths for platforms, `surfaces` those for other access.

    Without either, citebot runs without the server. Raises `SettingsError` if there are paths but
    no port.
    """
    metrics = ConversationMetrics()
    watcher = team.stock.watcher
    health = Health(
        platforms,
        team.stock.library,
        clock,
        watched=lambda: {each.repository: each for each in watcher.status()},
        needs_indexes=duties.answers or duties.indexes,
    )
    token = settings.metrics_token.get_secret_value() if settings.metrics_token else ""
    probes = ProbeHandlers(health=health, metrics=metrics, clock=clock, mask=make_redactor(settings), token=token)
    entrance = LatePostRoutes()
    server, local = make_application(), make_application()
    probes.join(server.router)
    probes.join_local(local.router)
    server.router.routes += [Route(path, entrance.receive, methods=["POST"]) for path in doors]
    for join in surfaces:
        join(server.router)
    async with AsyncExitStack() as stack:
        runs = RunMetrics(metrics.registry, settings.prices)
        await stack.enter_async_context(team.events.follow(runs.follow))
        connections = Connections(count_closed=metrics.count_closed)
        listening = run_http_server(
            server, host=settings.web_host, port=settings.web_port, connections=connections,
            count_request=metrics.count_request,
        )  # fmt: skip
        address = await _enter(stack, listening, "/healthz and /readyz", needed=bool(doors or surfaces))
        listening = run_http_server(
            local, host=LOOPBACK, port=settings.metrics_port, connections=Connections(most=MAX_LOCAL),
            count_request=metrics.count_request,
            advice="Set CITEBOT_METRICS_PORT (0 = any free port).",
        )  # fmt: skip
        metrics_address = await _enter(stack, listening, "/metrics and the details of /readyz", needed=False)
        yield ServiceMonitoring(
            metrics=metrics, health=health, probes=probes, doors=entrance,
            address=address, metrics_address=metrics_address,
        )  # fmt: skip


async def _enter(
    stack: AsyncExitStack, listening: AbstractAsyncContextManager[str], missing: str, *, needed: bool
) -> str:
    """Start to listen, and return the address; empty, with a warning, if an optional listener fails."""
    try:
        return await stack.enter_async_context(listening)
    except SettingsError as error:
        if needed:
            raise
        log.warning("%s Until then, %s are unavailable; questions are answered.", error, missing)
        return ""
