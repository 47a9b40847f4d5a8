"""The REST API: who may call, how often, what is broken at the moment, and which endpoint answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping

from aiohttp import web

from tests.fakes.discord.calls import Call
from tests.fakes.discord.checks import Rules
from tests.fakes.discord.errors import REFUSALS, DiscordError
from tests.fakes.discord.faults import Faults
from tests.fakes.discord.limits import RateLimits
from tests.fakes.discord.requests import Answer, Ask, Endpoint, Received, receive
from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.faults import Fault

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
VIA = {"Via": "1.1 google"}
INVALID = {401, 403, 429}


class Rest:
    """Answers `/api/v10`; `token` is the only one that is accepted."""

    def __init__(
        self, *, clock: Clock, changes: Changes, limits: RateLimits, faults: Faults, rules: Rules, token: str
    ) -> None:
        self.calls: list[Call] = []
        self.token = token
        self._clock = clock
        self._changes = changes
        self._limits = limits
        self._faults = faults
        self._rules = rules

    def serve(self, app: web.Application, endpoints: Iterable[Endpoint]) -> None:
        """Add the endpoints to a server."""
        for endpoint in endpoints:
            app.router.add_route(endpoint.method, f"/api/v10{endpoint.path}", self._serving(endpoint))
        app.router.add_route("*", "/api/{rest:.*}", self._unknown)

    def _serving(self, endpoint: Endpoint) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._handle(endpoint, request)

        return handle

    async def _unknown(self, request: web.Request) -> web.Response:
        return _answered(404, {"message": "404: Not Found", "code": 0}, VIA)

    async def _handle(self, endpoint: Endpoint, request: web.Request) -> web.StreamResponse:
        received = await receive(request, self._rules.most_file)
        call = self._noted(endpoint, request, received)
        fault = self._faults.take(call.name)
        if fault is None:
            return self._answer(endpoint, call, received)
        call.fault = fault.kind
        response = self._answer(endpoint, call, received) if fault.after else None
        return await self._suffer(request, fault, call, response) or self._answer(endpoint, call, received)

    def _noted(self, endpoint: Endpoint, request: web.Request, received: Received) -> Call:
        call = Call(
            name=endpoint.name,
            method=request.method,
            path=request.path,
            args=dict(request.match_info),
            query=dict(request.query),
            body=received.body,
            files=tuple(each.filename for each in received.files),
            at=self._clock.now(),
            token=request.headers.get("Authorization", ""),
        )
        self.calls.append(call)
        self._changes.tell()
        return call

    def _answer(self, endpoint: Endpoint, call: Call, received: Received) -> web.Response:
        if self._limits.banned:
            return self._settled(call, web.Response(status=429, text="error code: 1015"))
        if not endpoint.open and call.token != f"Bot {self.token}":
            return self._refused(call, DiscordError(0), {})
        verdict = self._limits.check(endpoint, call.args)
        if verdict.wait is not None:
            call.response = verdict.body
            return self._settled(call, _answered(429, verdict.body, VIA | dict(verdict.headers)))
        try:
            if received.refusal is not None:
                raise received.refusal
            answer = endpoint.answer(Ask(path=call.args, query=call.query, body=call.body, files=received.files))
        except DiscordError as error:
            return self._refused(call, error, verdict.headers)
        call.response = answer
        return self._settled(call, _answered(204 if answer is None else 200, answer, VIA | dict(verdict.headers)))

    def _refused(self, call: Call, error: DiscordError, headers: Mapping[str, str]) -> web.Response:
        call.response = error.body
        return self._settled(call, _answered(error.status, error.body, VIA | dict(headers)))

    def _settled(self, call: Call, response: web.Response) -> web.Response:
        call.status = response.status
        if response.status in INVALID:
            self._limits.count_invalid()
        self._changes.tell()
        return response

    async def _suffer(
        self, request: web.Request, fault: Fault, call: Call, response: web.Response | None
    ) -> web.Response | None:
        """Do what was ordered; None means that the call continues as usual."""
        match fault.kind:
            case "hang":
                assert fault.gate is not None
                await fault.gate.hold()
                gone = response is None and await _is_gone(request)
                return web.Response() if gone else response  # the caller died before its call took effect
            case "reset":
                if request.transport is not None:
                    request.transport.abort()
                call.status = 0
                self._changes.tell()
                return web.Response()  # never arrives
            case "http":
                return self._settled(call, web.Response(status=fault.status, text="the fake was told to fail"))
            case "ratelimited":
                return self._settled(call, _too_many(fault))
            case "error":
                return self._settled(call, _error(fault, call))


def _answered(status: int, answer: Answer, headers: Mapping[str, str]) -> web.Response:
    if answer is None:
        return web.Response(status=status, headers=headers)
    # Exactly this type: with a charset behind it, discord.py takes the answer for text.
    return web.Response(
        status=status, body=json.dumps(answer).encode(), headers=headers, content_type="application/json"
    )


def _too_many(fault: Fault) -> web.Response:
    if fault.stray:
        return web.Response(status=429, text="error code: 1015")
    body = {"message": "You are being rate limited.", "retry_after": fault.retry_after, "global": False}
    return _answered(429, body, VIA | {"X-RateLimit-Scope": "shared"})


def _error(fault: Fault, call: Call) -> web.Response:
    status, message = REFUSALS.get(fault.code, (fault.status, "the fake was told to refuse"))
    call.response = {"code": fault.code, "message": message, "retry_after": 0.01, "global": False}
    return _answered(status, call.response, VIA)


async def _is_gone(request: web.Request) -> bool:
    for _ in range(5):  # rounds in which the loop notices a connection that was closed meanwhile
        await asyncio.sleep(0)
    return request.transport is None or request.transport.is_closing()
