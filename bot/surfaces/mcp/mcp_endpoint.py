"""MCP over HTTP, at `/mcp` of the server: whose request it is, what of it is read, and the SDK behind that."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.surfaces.long_requests import LateCore, LongRequests
from bot.surfaces.principals import Principal, find_bearer
from bot.surfaces.sse import is_gone
from bot.surfaces.team_surfaces import SurfaceCore
from bot.tasks import run_in_background
from bot.webhooks.body_limits import BodyReader

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
LARGEST = 1_000_000  # bytes of a body
TOTAL = 8_000_000
SECONDS = 10.0
PATIENCE = 20.0  # seconds for which a piece may wait for a reader
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
WRONG_HOST = "This server is not called by that name. Have it added to `hosts` in the table [mcp] of citebot.toml."
WRONG_ORIGIN = "Pages of that origin may not call this server."
UNKNOWN_CALLER = "Send a token that citebot.toml lists, in the header `Authorization: Bearer TOKEN`."
_HOST = re.compile(r"(?P<name>[a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
_OF_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding"})  # headers that are the server's to send
_GLANCE = 0.5  # seconds after which a client that has gone is noticed
_ENDING = 2.0

Message = MutableMapping[str, Any]
AsgiApp = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

log = logging.getLogger(__name__)


class McpEndpoint:
    """Serves those who have a token, each request by itself: nothing is kept between two of them."""

    def __init__(self, core: LateCore, requests: LongRequests) -> None:
        self._core = core
        self._requests = requests
        self._bodies = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL)
        self._manager: StreamableHTTPSessionManager | None = None
        self._principal: ContextVar[Principal] = ContextVar("principal")

    def join(self, application: web.Application) -> None:
        """Add the path to the application of the server."""
        application.router.add_post(PATH, self._receive)

    @asynccontextmanager
    async def open(self, core: SurfaceCore) -> AsyncIterator[None]:
        """Serve for as long as the context is open; what is in progress at its end is interrupted."""
        manager = await asyncio.to_thread(_load_manager, core, self._principal.get)
        async with run_in_background(self._run(manager)):
            yield

    async def _run(self, manager: StreamableHTTPSessionManager) -> None:
        """Run the manager in a task of its own, as its scopes are bound to one."""
        try:
            async with manager.run():
                self._manager = manager
                await asyncio.Event().wait()
        finally:
            self._manager = None

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        core, manager = self._core.get(), self._manager
        if manager is None:
            raise web.HTTPServiceUnavailable(text="MCP is not open yet. Try again.", headers={"Retry-After": "5"})
        check_caller(request, core.hosts)
        principal = find_bearer(request.headers.getall("Authorization", []), core.tokens)
        if principal is None:
            raise web.HTTPUnauthorized(text=UNKNOWN_CALLER, headers={"WWW-Authenticate": "Bearer"})
        body = await self._bodies.read(request)
        if isinstance(body, web.Response):
            return body
        self._principal.set(principal)
        with self._requests.hold(request, principal.key):
            return await AsgiExchange(request, body).run(manager.handle_request)


def is_installed() -> bool:
    """Whether the SDK is there."""
    return find_spec("mcp") is not None


def _load_manager(core: SurfaceCore, find_principal: Callable[[], Principal]) -> StreamableHTTPSessionManager:
    """Import the SDK, which takes a second, and make what serves requests by it."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from bot.surfaces.mcp.mcp_server import make_server

    return StreamableHTTPSessionManager(make_server(core, find_principal), stateless=True, json_response=False)


def check_caller(request: web.Request, hosts: tuple[str, ...]) -> None:
    """Refuse requests to another name than the server's, and those of pages from elsewhere.

    A page that was loaded under a name that now leads here could otherwise call the server in its reader's name.
    """
    if not _is_own(request.headers.get("Host", ""), hosts):
        raise web.HTTPMisdirectedRequest(text=WRONG_HOST)
    origin = request.headers.get("Origin")
    if origin is not None and not _is_own(_read_host(origin), hosts):
        raise web.HTTPForbidden(text=WRONG_ORIGIN)


def _read_host(origin: str) -> str:
    """Return the host of a page with its port, as it is written in a header `Host`; empty for none."""
    scheme, _, host = origin.partition("://")
    return host if scheme in {"http", "https"} else ""


def _is_own(host: str, hosts: tuple[str, ...]) -> bool:
    """Whether a host, which may have a port, is this machine or one of those listed."""
    found = _HOST.fullmatch(host.lower())
    known = {each.lower() for each in hosts}
    return found is not None and (found["name"] in LOOPBACK or found[0] in known or found["name"] in known)


class AsgiExchange:
    """One request handed to an ASGI application, and its response as that comes."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self._request = request
        self._incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._is_over = asyncio.Event()
        self._response: web.StreamResponse | None = None

    async def run(self, app: AsgiApp) -> web.StreamResponse:
        """Run the application until it is done, or its client is gone."""
        task = asyncio.ensure_future(app(self._describe_scope(), self._receive, self._send))
        try:
            while not (await asyncio.wait({task}, timeout=_GLANCE))[0]:
                if is_gone(self._request):
                    self._is_over.set()
                    await asyncio.wait({task}, timeout=_ENDING)
                    break
        finally:
            task.cancel()
            await asyncio.wait({task})
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            log.error("a request of MCP failed", exc_info=error)
        if self._response is None:
            raise web.HTTPInternalServerError(text="citebot could not answer. Its log says why.")
        with suppress(ConnectionError):
            await self._response.write_eof()
        return self._response

    async def _receive(self) -> Message:
        if self._incoming:
            return self._incoming.pop()
        await self._is_over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            response = web.StreamResponse(status=message["status"])
            for name, value in message.get("headers", ()):
                if name.decode("latin-1").lower() not in _OF_CONNECTION:
                    response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
            response.force_close()
            await response.prepare(self._request)
            self._response = response
        elif self._response is not None and message.get("body"):
            await self._write(self._response, message["body"])

    async def _write(self, response: web.StreamResponse, piece: bytes) -> None:
        """Write a piece; a reader that does not take it for long is left."""
        try:
            async with asyncio.timeout(PATIENCE):
                await response.write(piece)
        except TimeoutError:
            log.info("a stream was ended: its reader took nothing for %g s", PATIENCE)
            if self._request.transport is not None:
                self._request.transport.abort()
            self._is_over.set()
            raise

    def _describe_scope(self) -> dict[str, Any]:
        request = self._request
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.scheme,
            "path": request.path,
            "raw_path": request.raw_path.encode(),
            "query_string": request.query_string.encode(),
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": None,
            "server": None,
            "state": {},
        }
