"""The Web API: who may call, how often, what is broken at the moment, and which method answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.faults import Fault
from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args, read_arguments
from tests.fakes.slack.calls import Call
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.faults import Faults
from tests.fakes.slack.limits import RateLimits
from tests.fakes.slack.scopes import Access
from tests.fakes.slack.workspace import TEAM

Method = Callable[[Args], JSON]


class WebApi:
    """Answers `/api/{method}`."""

    def __init__(
        self,
        *,
        clock: Clock,
        changes: Changes,
        limits: RateLimits,
        faults: Faults,
        access: Access,
        methods: Mapping[str, Method],
    ) -> None:
        self.calls: list[Call] = []
        self._clock = clock
        self._changes = changes
        self._limits = limits
        self._faults = faults
        self._access = access
        self._methods = methods

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call and note it."""
        call = await self._received(request)
        fault = self._faults.take(call.method)
        if fault is not None:
            call.fault = fault.kind
        if fault is None or fault.after:
            response = self._answer(call)
            return response if fault is None else await self._suffer(request, call, fault, response)
        return await self._suffer(request, call, fault, None)

    async def _received(self, request: web.Request) -> Call:
        method = request.match_info["method"]
        refusal: JSON = {}
        try:
            args, form = await read_arguments(request, method)
        except SlackError as error:
            args, form, refusal = {}, "json", error.body
        peer = request.transport.get_extra_info("peername") if request.transport else None
        header = request.headers.get("Authorization", "")
        token = header.removeprefix("Bearer ") or str(args.get("token", ""))
        call = Call(
            method=method,
            args={name: value for name, value in args.items() if name != "token"},
            at=self._clock.now(),
            connection=f"{peer[0]}:{peer[1]}" if peer else "",
            form=form,
            token=token,
            response=refusal,
        )
        self.calls.append(call)
        self._changes.tell()
        return call

    def _answer(self, call: Call) -> web.Response:
        if not call.response:
            call.response = self._outcome(call)
        wait = call.response.get("retry_after")
        headers = {"X-OAuth-Scopes": self._access.granted_to(call.token)}
        if wait is not None:
            headers["Retry-After"] = str(wait)
        return self._settled(call, 200 if wait is None else 429, headers)

    def _outcome(self, call: Call) -> JSON:
        args = Args(call.args)
        if call.method not in self._methods:
            return SlackError("unknown_method", req_method=call.method).body
        try:
            self._access.check(call.method, call.token, args)
            wait = self._limits.check(call.method, TEAM, args.text("channel"))
            if wait is not None:
                return {"ok": False, "error": "ratelimited", "retry_after": wait}
            return {"ok": True, **self._methods[call.method](args)}
        except SlackError as error:
            return error.body

    def _settled(self, call: Call, status: int, headers: Mapping[str, str]) -> web.Response:
        call.status = status
        self._changes.tell()
        body = {name: value for name, value in call.response.items() if name != "retry_after"}
        return web.json_response(body, status=status, headers=headers)

    async def _suffer(
        self, request: web.Request, call: Call, fault: Fault, response: web.Response | None
    ) -> web.StreamResponse:
        match fault.kind:
            case "hang":
                assert fault.gate is not None
                await fault.gate.hold()
                if response is None and await _is_gone(request):
                    return web.Response()  # the caller died before its call took effect
                return response or self._answer(call)
            case "reset":
                if request.transport is not None:
                    request.transport.abort()
                call.status = 0
                self._changes.tell()
                return web.Response()  # never arrives
            case "http":
                call.status, call.response = fault.status, {}
                return web.Response(status=fault.status, text="the fake was told to fail")
            case "ratelimited":
                call.response = {"ok": False, "error": "ratelimited"}
                return self._settled(call, 429, {"Retry-After": str(fault.retry_after)})
            case "error":
                call.response = {"ok": False, "error": fault.error}
                return self._settled(call, 200, {})


async def _is_gone(request: web.Request) -> bool:
    for _ in range(5):  # rounds in which the loop notices a connection that was closed meanwhile
        await asyncio.sleep(0)
    return request.transport is None or request.transport.is_closing()
