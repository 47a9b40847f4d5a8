"""MCP over HTTP, at `/mcp` of the server: authenticates a request, limits its body, and passes it to the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from bot.http.connections import keep_open
from bot.http.requests import BodyReader, is_own_host
from bot.surfaces.principals import Principal, find_bearer
from bot.surfaces.team_surfaces import Late, SurfaceCore
from bot.tasks import run_in_background

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
LARGEST = 1_000_000  # bytes of a body
TOTAL = 8_000_000
SECONDS = 10.0
MAX_CALLS = 32  # of one person at a time; an agent makes many side by side
WRONG_HOST = "Unknown server name. Have it added to `hosts` in the table [mcp] of citebot.toml."
WRONG_ORIGIN = "Pages of that origin may not call this server."
UNKNOWN_CALLER = "Send a token that citebot.toml lists, in the header `Authorization: Bearer TOKEN`."


class McpEndpoint:
    """Serves people with a token, each request separately and without a session."""

    def __init__(self, core: Late[SurfaceCore]) -> None:
        self._core = core
        self._bodies = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL)
        self._manager: StreamableHTTPSessionManager | None = None
        self._principal: ContextVar[Principal] = ContextVar("principal")

    def join(self, router: Router) -> None:
        """Add the path to the server's."""
        router.routes.append(Route(PATH, self._receive, methods=["POST"]))

    @asynccontextmanager
    async def open(self, core: SurfaceCore) -> AsyncIterator[None]:
        """Serve for as long as the context is open; then interrupt requests in progress."""
        manager = await asyncio.to_thread(_load_manager, core, self._principal.get)
        async with run_in_background(self._run(manager)):
            yield

    async def _run(self, manager: StreamableHTTPSessionManager) -> None:
        """Run the manager in a separate task, to which its scopes are bound."""
        try:
            async with manager.run():
                self._manager = manager
                await asyncio.Event().wait()
        finally:
            self._manager = None

    async def _receive(self, request: Request) -> Response:
        core, manager = self._core.get(), self._manager
        if manager is None:
            raise HTTPException(503, "MCP is not open yet. Try again.", {"Retry-After": "5"})
        check_caller(request, core.hosts)
        principal = find_bearer(request.headers.getlist("Authorization"), core.tokens)
        if principal is None:
            raise HTTPException(401, UNKNOWN_CALLER, {"WWW-Authenticate": "Bearer"})
        body = await self._bodies.read(request)
        self._principal.set(principal)
        keep_open(request, f"mcp {principal.key}", most=MAX_CALLS)
        return _Handled(manager, body)


class _Handled(Response):
    """The SDK's answer to a request whose body was read."""

    def __init__(self, manager: StreamableHTTPSessionManager, read: bytes) -> None:
        super().__init__()
        self._manager = manager
        self._incoming: list[Message] = [{"type": "http.request", "body": read, "more_body": False}]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def replay() -> Message:
            return self._incoming.pop() if self._incoming else await receive()

        await self._manager.handle_request(scope, replay, send)


def is_installed() -> bool:
    """Whether the SDK is installed."""
    return find_spec("mcp") is not None


def _load_manager(core: SurfaceCore, find_principal: Callable[[], Principal]) -> StreamableHTTPSessionManager:
    """Import the SDK, which takes a second, and make its request manager."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from bot.surfaces.mcp.mcp_server import make_server

    return StreamableHTTPSessionManager(make_server(core, find_principal), stateless=True, json_response=False)


def check_caller(request: Request, hosts: tuple[str, ...]) -> None:
    """Refuse requests for another server name, and those of pages from elsewhere.

    A page loaded under a name that now leads here could otherwise call the server in its reader's
    name.
    """
    if not is_own_host(request.headers.get("Host", ""), hosts):
        raise HTTPException(421, WRONG_HOST)
    origin = request.headers.get("Origin")
    if origin is not None and not is_own_host(_read_host(origin), hosts):
        raise HTTPException(403, WRONG_ORIGIN)


def _read_host(origin: str) -> str:
    """Return the host of a page with its port, as in a `Host` header; empty for none."""
    scheme, _, host = origin.partition("://")
    return host if scheme in {"http", "https"} else ""
