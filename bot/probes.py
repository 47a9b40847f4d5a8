"""The paths for those who look after the process: /healthz, /readyz and /metrics."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.clock import Clock
from bot.health import Health
from bot.metrics import CONTENT_TYPE, Metrics
from bot.observing import Load

# A proxy says by these that somebody else stands behind it.
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")
UNKNOWN_PATH = "other"


@dataclass(kw_only=True)
class Probes:
    """Answers the probes. Names, sentences and figures are not for what a proxy passes on."""

    health: Health
    metrics: Metrics
    clock: Clock
    mask: Callable[[str], str]
    load: Callable[[], Load] = lambda: Load(under_way=0, waiting=0)

    def join(self, application: web.Application) -> None:
        """Add the paths to an application, and count all its requests."""
        application.router.add_get("/healthz", self.healthz)
        application.router.add_get("/readyz", self.readyz)
        application.router.add_get("/metrics", self.scraped)
        application.middlewares.append(self._counting())

    async def healthz(self, request: web.Request) -> web.Response:
        """Whether the process lives: its loop answers, and what is said to it can be stored."""
        reason = await self.health.store()
        told: dict[str, Any] = {"alive": not reason}
        return self._json(told | ({"reasons": [reason]} if reason and is_local(request) else {}), ok=not reason)

    async def readyz(self, request: web.Request) -> web.Response:
        """Whether questions come in and can be answered; to strangers no more than that."""
        found = await self.health.readiness()
        record = found.record(self.clock.now()) if is_local(request) else {"ready": found.ready}
        return self._json(record, ok=found.ready)

    async def scraped(self, request: web.Request) -> web.Response:
        """Everything that is counted, for Prometheus."""
        if is_forwarded(request):
            raise web.HTTPNotFound
        found = await self.health.readiness()
        body = self.metrics.text(self.load(), found.repositories, self.clock.now())
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    def _json(self, record: dict[str, Any], *, ok: bool) -> web.Response:
        shown = _masked(record, self.mask)
        return web.json_response(shown, status=200 if ok else 503, headers={"Cache-Control": "no-store"})

    def _counting(self) -> Callable[..., Awaitable[web.StreamResponse]]:
        @web.middleware
        async def counting(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            status = 500
            try:
                response = await handler(request)
                status = response.status
            except web.HTTPException as refusal:
                status = refusal.status
                raise
            else:
                return response
            finally:
                resource = request.match_info.route.resource
                self.metrics.requested(resource.canonical if resource else UNKNOWN_PATH, status)

        return counting


def is_forwarded(request: web.Request) -> bool:
    """Whether a proxy passes the request on for somebody else."""
    return any(name in request.headers for name in _FORWARDED)


def is_local(request: web.Request) -> bool:
    """Whether the request comes from this machine itself."""
    try:
        near = ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        near = False
    return near and not is_forwarded(request)


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    """Take secrets out of every text in a record."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: _masked(each, mask) for key, each in value.items()}
    return [_masked(each, mask) for each in value] if isinstance(value, list) else value
