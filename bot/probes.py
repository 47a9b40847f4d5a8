"""The paths for those who look after the process: /healthz, /readyz and /metrics."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from bot.clock import Clock
from bot.health import Health
from bot.metrics import CONTENT_TYPE, ConversationMetrics
from bot.observing import AnswerLoad

# A proxy says by these that somebody else stands behind it; that none of them is there proves nothing.
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")
UNKNOWN_PATH = "other"

Trust = Callable[[web.Request], bool]
Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(kw_only=True)
class ProbeHandlers:
    """Answers the probes. Names, sentences and figures are for whoever is trusted; others learn yes or no.

    Where a request comes from says nothing of who asks: what a proxy of this machine passes on comes from this machine.
    So the server that others reach trusts the token alone, and the one of this machine has a port of its own.
    """

    health: Health
    metrics: ConversationMetrics
    clock: Clock
    mask: Callable[[str], str]
    token: str = ""
    load: Callable[[], AnswerLoad] = lambda: AnswerLoad(under_way=0, waiting=0)

    def join(self, application: web.Application) -> None:
        """Add the paths to the application that others reach, and count all its requests."""
        self._add(application, self._has_token)

    def join_local(self, application: web.Application) -> None:
        """Add the paths to an application that listens at a loopback address, at a port of its own."""
        self._add(application, is_local)

    def _add(self, application: web.Application, trust: Trust) -> None:
        async def healthz(request: web.Request) -> web.Response:
            return await self._tell_life(in_full=trust(request))

        async def readyz(request: web.Request) -> web.Response:
            return await self._tell_readiness(in_full=trust(request))

        async def metrics(request: web.Request) -> web.Response:
            if trust(request):
                return await self._tell_figures()
            if self.token:
                raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
            raise web.HTTPNotFound

        application.router.add_get("/healthz", healthz)
        application.router.add_get("/readyz", readyz)
        application.router.add_get("/metrics", metrics)
        application.middlewares.append(self._count_requests())

    async def _tell_life(self, *, in_full: bool) -> web.Response:
        """Whether the process lives: its loop answers, and what is said to it can be stored."""
        reason = await self.health.store()
        told: dict[str, Any] = {"alive": not reason}
        return self._json(told | ({"reasons": [reason]} if reason and in_full else {}), ok=not reason)

    async def _tell_readiness(self, *, in_full: bool) -> web.Response:
        """Whether questions come in and can be answered."""
        found = await self.health.readiness()
        return self._json(found.record(self.clock.now()) if in_full else {"ready": found.ready}, ok=found.ready)

    async def _tell_figures(self) -> web.Response:
        """Everything that is counted, for Prometheus."""
        found = await self.health.readiness()
        body = self.metrics.text(self.load(), found.repositories, self.clock.now())
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    def _has_token(self, request: web.Request) -> bool:
        given = request.headers.getall("Authorization", [])
        wanted = f"Bearer {self.token}".encode()
        return bool(self.token) and len(given) == 1 and hmac.compare_digest(_encode(given[0]), wanted)

    def _json(self, record: dict[str, Any], *, ok: bool) -> web.Response:
        shown = _mask_record(record, self.mask)
        return web.json_response(shown, status=200 if ok else 503, headers={"Cache-Control": "no-store"})

    def _count_requests(self) -> Callable[..., Awaitable[web.StreamResponse]]:
        @web.middleware
        async def count(request: web.Request, handler: Respond) -> web.StreamResponse:
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
                self.metrics.count_request(resource.canonical if resource else UNKNOWN_PATH, status)

        return count


def is_local(request: web.Request) -> bool:
    """Whether the request comes from this machine, is meant for it, and is passed on for nobody else.

    A page in a browser of this machine can have any name lead here; then it is that name that is asked for.
    """
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        asked_for = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
        near = ipaddress.ip_address(request.remote or "").is_loopback
        return near and (asked_for == "localhost" or ipaddress.ip_address(asked_for).is_loopback)
    except ValueError:
        return False


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _mask_record(value: Any, mask: Callable[[str], str]) -> Any:
    """Take secrets out of every text in a record."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: _mask_record(each, mask) for key, each in value.items()}
    return [_mask_record(each, mask) for each in value] if isinstance(value, list) else value
