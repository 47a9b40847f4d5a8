"""Guards every request of the page: the host must be ours, the session valid, and the form written by us."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from bot.surfaces.web.web_sessions import WebSession, WebSessions
from bot.webhooks.body_limits import BodyReader

CSRF_FIELD = "csrf"
LOGIN = "/login"
# Everything comes from files of ours: no script, style or picture in a page or in what is put into one does anything.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers would not say where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONGEST_FORM = 512_000  # bytes: the longest question that is read, each of its characters written as three
_FORM_SECONDS = 10.0
_ALL_FORMS = 8_000_000
_MOST_FIELDS = 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SignedIn = Callable[[web.Request, WebSession], Awaitable[web.StreamResponse]]
Submitted = Callable[[web.Request, WebSession, Mapping[str, str]], Awaitable[web.StreamResponse]]
Refuse = Callable[[int, str], web.Response]


@dataclass(frozen=True, kw_only=True)
class WebAddress:
    """How the page is reached: at loopback, and under `hosts`; `is_secure` where browsers reach those over TLS."""

    hosts: Collection[str] = ()
    is_secure: bool = False

    def admits(self, host: str) -> bool:
        """Whether a request was meant for this server: a name that a stranger made lead here is not."""
        name, port = _split_host(host)
        return (name in _LOOPBACK and (not port or port.isdecimal())) or host.lower() in self.hosts

    def needs_tls(self, host: str) -> bool:
        """Whether a cookie for this host may go over TLS alone."""
        return self.is_secure and _split_host(host)[0] not in _LOOPBACK


class RequestGuard:
    """Lets in who is signed in; `refuse` writes what others see."""

    def __init__(self, address: WebAddress, sessions: WebSessions, refuse: Refuse) -> None:
        self._address = address
        self._sessions = sessions
        self._refuse = refuse
        self._bodies = BodyReader(largest=LONGEST_FORM, seconds=_FORM_SECONDS, total=_ALL_FORMS)

    def open(self, handle: Handler) -> Handler:
        """Serve anybody who asks for this host."""

        async def serve(request: web.Request) -> web.StreamResponse:
            if not self._address.admits(request.headers.get("Host", "")):
                return protect(
                    self._refuse(421, "This is not the name of a page here. Use the address that citebot printed.")
                )
            try:
                return protect(await handle(request))
            except web.HTTPException as error:
                if error.status < 400:
                    protect(error)
                    raise
                refused = protect(self._refuse(error.status, error.text or error.reason))
                refused.headers.update(
                    {name: error.headers[name] for name in ("Retry-After",) if name in error.headers}
                )
                return refused

        return serve

    def require_session(self, handle: SignedIn) -> Handler:
        """Serve who is signed in; others are sent to where one does that."""

        async def serve(request: web.Request) -> web.StreamResponse:
            session = self.find_session(request)
            if session is not None:
                return await handle(request, session)
            if "HX-Request" in request.headers or "text/event-stream" in request.headers.get("Accept", ""):
                return web.Response(status=401, headers={"HX-Redirect": LOGIN})
            if request.method == "GET" and request.headers.get("Sec-Fetch-Site") == "cross-site":
                # Browsers send the cookie only where our own page leads here, and not from a link in a chat.
                return web.Response(content_type="text/html", headers={"Refresh": "0"})
            raise web.HTTPSeeOther(LOGIN)

        return self.open(serve)

    def require_form(self, handle: Submitted) -> Handler:
        """Serve a form that we wrote for this session, and that no other page has sent."""

        async def serve(request: web.Request, session: WebSession) -> web.StreamResponse:
            fields = await self.read_form(request)
            if not session.accepts(fields.get(CSRF_FIELD, "")):
                raise web.HTTPForbidden(text="This form has expired. Reload the page and try again.")
            return await handle(request, session, fields)

        return self.require_session(serve)

    async def read_form(self, request: web.Request) -> Mapping[str, str]:
        """Read what a form of this page has sent; `web.HTTPForbidden` where another page has."""
        if not _is_same_origin(request):
            raise web.HTTPForbidden(text="This was sent by another page than this one, so nothing was done.")
        if request.content_type != "application/x-www-form-urlencoded":
            raise web.HTTPUnsupportedMediaType(text="Only forms of this page are taken.")
        body = await self._bodies.read(request)
        if isinstance(body, web.Response):
            reason = {413: "This is too long. Ask with less text.", 408: "This came too slowly. Try again."}
            raise _make_error(body.status, reason.get(body.status, "The request could not be read. Try again."))
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise web.HTTPBadRequest(text="The form could not be read. Reload the page and try again.") from None
        return dict(fields)

    def sign_in(self, request: web.Request, response: web.StreamResponse, cookie: str) -> None:
        """Let a browser remember who is signed in; no script and no other site can use it."""
        response.set_cookie(
            self._name_cookie(request), cookie, httponly=True, samesite="Strict", path="/",
            max_age=round(self._sessions.seconds), secure=self._address.needs_tls(request.headers.get("Host", "")),
        )  # fmt: skip

    def sign_out(self, request: web.Request, response: web.StreamResponse) -> None:
        """End the session of a browser."""
        name = self._name_cookie(request)
        self._sessions.close(request.cookies.get(name, ""))
        response.del_cookie(name, path="/")

    def find_session(self, request: web.Request) -> WebSession | None:
        """Return who asks, if they are signed in."""
        return self._sessions.find(request.cookies.get(self._name_cookie(request), ""))

    def _name_cookie(self, request: web.Request) -> str:
        """Name the cookie; browsers send those of all servers of a host, whatever their port is."""
        host = request.headers.get("Host", "")
        port = _split_host(host)[1]
        return f"{'__Host-' if self._address.needs_tls(host) else ''}citebot-{port or 'web'}"


def protect(response: web.StreamResponse) -> web.StreamResponse:
    """Have browsers do nothing with an answer but show it; one that was sent already has these headers."""
    if not response.prepared:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
    return response


def _is_same_origin(request: web.Request) -> bool:
    """Whether a page of ours has sent a form; every browser says so in one of two headers."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None and site != "same-origin":
        return False
    if origin is None:
        return site is not None
    try:
        return urlsplit(origin).netloc.lower() == request.headers.get("Host", "").lower()
    except ValueError:
        return False


def _split_host(host: str) -> tuple[str, str]:
    """Split the name of a host from its port, which may be missing."""
    name, colon, port = host.lower().rpartition(":")
    return (name, port) if colon and not port.endswith("]") else (host.lower(), "")


def _make_error(status: int, text: str) -> web.HTTPException:
    kinds: Mapping[int, type[web.HTTPError]] = {
        408: web.HTTPRequestTimeout, 415: web.HTTPUnsupportedMediaType, 503: web.HTTPServiceUnavailable,
    }  # fmt: skip
    if status == 413:
        return web.HTTPRequestEntityTooLarge(max_size=LONGEST_FORM, actual_size=LONGEST_FORM + 1, text=text)
    return kinds.get(status, web.HTTPBadRequest)(text=text)
