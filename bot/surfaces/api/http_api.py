"""The HTTP API as a part of the server: `/api`, whose errors are problem details."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from pydantic import BaseModel

from bot.surfaces.api.ask_requests import Asking
from bot.surfaces.api.openapi import describe_api
from bot.surfaces.api.operations import Operation, list_operations
from bot.surfaces.api.problems import make_error_middleware, render_problem
from bot.surfaces.api.request_reading import authenticate, read_json, read_query
from bot.surfaces.long_requests import LateCore
from bot.webhooks.body_limits import BodyReader

PREFIX = "/api"
LARGEST = 2_000_000  # bytes of a body
TOTAL = 8_000_000
SECONDS = 10.0


class HttpApi:
    """Serves the operations."""

    def __init__(self, core: LateCore, asking: Asking) -> None:
        self._core = core
        self._bodies = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL)
        self._operations = list_operations(core, asking)
        self.document = describe_api(self._operations, prefix=PREFIX)

    def join(self, application: web.Application) -> None:
        """Add the paths to the application of the server."""
        own = web.Application(middlewares=[make_error_middleware(render_problem)])
        own.on_response_prepare.append(forbid_storing)
        own.router.add_get("/openapi.json", self._show_document, allow_head=False)
        for operation in self._operations:
            own.router.add_route(operation.method, operation.path, self._make_handler(operation))
        application.add_subapp(PREFIX, own)

    async def _show_document(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(self.document)

    def _make_handler(self, operation: Operation[Any]) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            principal = authenticate(request, self._core.get().tokens)
            asked: BaseModel = (
                read_query(request, operation.asked)
                if operation.method == "GET"
                else await read_json(request, operation.asked, self._bodies)
            )
            return await operation.handle(request, principal, asked)

        return handle


async def forbid_storing(_: web.Request, response: web.StreamResponse) -> None:
    """Let nobody between store an answer, or take it for something else than it says it is."""
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
