"""The HTTP server of a process, and the monitoring that it serves."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from bot.app import TeamApp, make_redactor
from bot.clock import Clock
from bot.errors import SettingsError
from bot.monitoring.health import Health, ProbeHandlers
from bot.monitoring.metrics import ConversationMetrics, RunMetrics
from bot.serving.connection_limits import Connections
from bot.serving.roles import Duties
from bot.settings import Settings
from bot.surfaces.long_requests import KeepOpen

LOOPBACK = "127.0.0.1"
MOST_LOCAL = 32  # connections of those who look after the process

log = logging.getLogger(__name__)

Receive = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServedSurface(Protocol):
    """A surface as the server sees it: paths that are there from the beginning."""

    def join(self, application: web.Application) -> None:
        """Add the paths."""


MakeSurfaces = Callable[[KeepOpen], Sequence[ServedSurface]]


def make_no_surfaces(_: KeepOpen) -> Sequence[ServedSurface]:
    """Serve nothing beside what every process serves."""
    return ()


_CLOSING_SECONDS = 2.0
_ACCEPTING_ROUNDS = 3  # of the loop, within which what was accepted has become a connection
_UNREAD_SECONDS = 1.0  # for so long the rest of what nobody wants to read may keep coming in
_MOST_HEADERS, _LONGEST_HEADER = 64, 4_096
_BUFFER = 16_384  # bytes of a body that are taken in before somebody reads it


@dataclass(frozen=True, kw_only=True)
class ServiceMonitoring:
    """What the platforms report to, and the paths that they receive at; an address is empty if nothing listens.

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
    settings: Settings,
    team: TeamApp,
    clock: Clock,
    *,
    platforms: Sequence[str],
    doors: Sequence[str],
    duties: Duties,
    make_surfaces: MakeSurfaces = make_no_surfaces,
) -> AsyncIterator[ServiceMonitoring]:
    """Open everything; `doors` are the paths that platforms receive at, beside those of surfaces.

    Without any of both, citebot runs without the server. Raises `SettingsError` if there are some and nothing listens.
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
    probes.join(server)
    probes.join_local(local)
    for path in doors:
        server.router.add_post(path, entrance.receive)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_count_runs(team, RunMetrics(metrics.registry, settings.prices)))
        connections = Connections(count_closed=metrics.count_closed)
        surfaces = make_surfaces(connections.keep_open)
        join_surfaces(server, surfaces)
        listening = run_http_server(server, host=settings.web_host, port=settings.web_port, connections=connections)
        address = await _enter(stack, listening, "/healthz and /readyz", needed=bool(doors or surfaces))
        listening = run_http_server(
            local, host=LOOPBACK, port=settings.metrics_port, connections=Connections(most=MOST_LOCAL),
            advice="Set CITEBOT_METRICS_PORT (0 = any free port).",
        )  # fmt: skip
        metrics_address = await _enter(stack, listening, "/metrics and the whole of /readyz", needed=False)
        yield ServiceMonitoring(
            metrics=metrics, health=health, probes=probes, doors=entrance,
            address=address, metrics_address=metrics_address,
        )  # fmt: skip


async def _enter(
    stack: AsyncExitStack, listening: AbstractAsyncContextManager[str], missing: str, *, needed: bool
) -> str:
    """Start to listen, and return the address; empty, with a warning, if that fails and is not needed."""
    try:
        return await stack.enter_async_context(listening)
    except SettingsError as error:
        if needed:
            raise
        log.warning("%s Until then %s are missing; questions are answered.", error, missing)
        return ""


@asynccontextmanager
async def _count_runs(team: TeamApp, runs: RunMetrics) -> AsyncIterator[None]:
    """Count what the agent does for as long as the context is open."""

    def log_failure(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:  # the runs themselves continue
            log.error("Runs are not counted any more.", exc_info=error)

    with team.events.subscribe() as events:
        task = asyncio.create_task(runs.follow(events))
        task.add_done_callback(log_failure)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


def make_application() -> web.Application:
    """Return an application without paths. Each connection carries one request.

    So none is held without asking for something, and no proxy sends a request into one that is just being closed.
    """
    return web.Application(middlewares=[_close_connection])


def join_surfaces(application: web.Application, surfaces: Sequence[ServedSurface]) -> None:
    """Add the paths of surfaces to an application that is not served yet; their requests are counted as all are."""
    for surface in surfaces:
        surface.join(application)


@web.middleware
async def _close_connection(request: web.Request, handler: Receive) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as refusal:
        refusal.force_close()
        raise
    response.force_close()
    return response


class _QuietLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs requests that are no HTTP in one line, as information: anybody can send as many as they like."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        if isinstance(exc_info, HttpProcessingError | web.RequestPayloadError | ConnectionError):
            self.logger.info("a request could not be read (%s)", type(exc_info).__name__)
        else:
            super().exception(msg, *args, exc_info=exc_info, **more)


async def _drop_server_name(request: web.BaseRequest, response: web.StreamResponse) -> None:  # noqa: ARG001 - a signal
    """Tell nobody what serves, and in which version."""
    response.headers.popall("Server", None)


class _MuteRequestHandler(RequestHandler):
    """Answers what is no HTTP with a status alone: aiohttp would repeat what it could not read."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - which quotes the request
    ) -> web.StreamResponse:
        """Make the response to a request that could not be read or handled."""
        response = super().handle_error(request, status, exc)
        response.headers["Server"] = ""  # no signal is sent for it
        return response


class LatePostRoutes:
    """Paths that are opened and closed while the server runs: an application takes no new ones once it is served."""

    def __init__(self) -> None:
        self._open: dict[str, Receive] = {}
        self._closed = False

    def add_post(self, path: str, receive: Receive) -> None:
        """Let requests be posted to a path."""
        self._open[path] = receive

    def close(self) -> None:
        """Accept nothing more; callers are asked to try again."""
        self._closed = True

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Hand a request on; one that comes too early or too late is to be sent again."""
        receive = self._open.get(request.path)
        if receive is None or self._closed:
            raise web.HTTPServiceUnavailable(text="No requests are accepted at the moment. Try again.")
        return await receive(request)


@asynccontextmanager
async def run_http_server(
    application: web.Application,
    *,
    host: str,
    port: int,
    connections: Connections | None = None,
    advice: str = "Set CITEBOT_WEB_HOST and CITEBOT_WEB_PORT (0 = any free port).",
) -> AsyncIterator[str]:
    """Serve the application for as long as the context is open, at the address that is returned.

    Port 0 takes any that is free. Raises `SettingsError`, with the advice, where it cannot be listened at.
    """
    bounds = Connections() if connections is None else connections
    application.on_response_prepare.append(_drop_server_name)
    runner = web.AppRunner(
        application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_SECONDS,
        lingering_time=_UNREAD_SECONDS, keepalive_timeout=0, auto_decompress=False, read_bufsize=_BUFFER,
        logger=_QuietLogger(log),
        max_headers=_MOST_HEADERS, max_line_size=_LONGEST_HEADER, max_field_size=_LONGEST_HEADER,
    )  # fmt: skip
    await runner.setup()
    listener: asyncio.Server | None = None
    try:
        listener = await _listen(runner, bounds, host, port, advice)
        taken = listener.sockets[0].getsockname()
        yield f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"
    finally:
        if listener is not None:
            await stop_accepting(listener)
            listener.close()
        await runner.cleanup()
        await bounds.close()


async def stop_accepting(listener: asyncio.Server) -> None:
    """Take no more connections in, and let those that were accepted be made.

    Closing at once would lose a connection that was accepted at the same moment: until Python 3.13 it is then neither
    served nor closed until the next garbage collection.
    """
    loop = asyncio.get_running_loop()
    for each in listener.sockets:
        loop.remove_reader(each.fileno())
    for _ in range(_ACCEPTING_ROUNDS):
        await asyncio.sleep(0)


async def _listen(runner: web.AppRunner, connections: Connections, host: str, port: int, advice: str) -> asyncio.Server:
    if runner.server is None:
        raise AssertionError("a runner that is set up has a server")
    try:
        loop, server = asyncio.get_running_loop(), runner.server
        make_handler = partial(_MuteRequestHandler, server, loop=loop, **server._kwargs)  # noqa: SLF001 - aiohttp has no hook
        return await loop.create_server(connections.wrap(make_handler), host, port)
    except OSError as error:
        # asyncio puts the address before what the operating system says.
        reason = (error.strerror or str(error)).rpartition(": ")[2]
        taken = error.errno == errno.EADDRINUSE
        what = f"Port {port} is already in use" if taken else f"citebot cannot listen at {host}:{port} ({reason})"
        raise SettingsError(f"{what}. {advice}") from error
