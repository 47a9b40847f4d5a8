"""Guards every request of the page: its host, its session (a cookie) and its form must be ours."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.clock import Clock
from bot.http.requests import LOOPBACK, BodyReader, is_own_host, read_media_type
from bot.surfaces.principals import Principal

CSRF_FIELD = "csrf"
LOGIN = "/login"
SHARED = "/shared/"  # below which are the links that people send each other
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
_MAX_FIELDS = 20
log = logging.getLogger(__name__)
Handler = Callable[[Request], Awaitable[Response]]
Refuse = Callable[[Request, int, str], Response]
SESSION_SECONDS = 12 * 3600.0
MAX_SESSIONS = 1_000
MAX_EACH = 20  # of one person
_BYTES = 32
_LONGEST = 200  # characters of what a browser sends that are looked at


@dataclass(frozen=True, kw_only=True)
class WebAddress:
    """The addresses of the page: at loopback, and under `hosts`; `is_secure` if browsers reach those over TLS."""

    hosts: Collection[str] = ()
    is_secure: bool = False

    def admits(self, host: str) -> bool:
        """Whether a request names this server: strangers can make other names lead here."""
        return is_own_host(host, self.hosts)

    def needs_tls(self, host: str) -> bool:
        """Whether a cookie for this host requires TLS."""
        return self.is_secure and _split_host(host)[0] not in LOOPBACK


class RequestGuard:
    """Admits signed-in people; `refuse` writes the page for others."""

    def __init__(self, address: WebAddress, sessions: WebSessions, refuse: Refuse) -> None:
        self._address = address
        self._sessions = sessions
        self._refuse = refuse
        self._bodies = BodyReader(largest=LONGEST_FORM, seconds=_FORM_SECONDS, total=_ALL_FORMS)

    def open(self, handle: Handler) -> Handler:
        """Serve anybody who asks for this host."""

        async def serve(request: Request) -> Response:
            if not self._address.admits(request.headers.get("Host", "")):
                return protect(
                    self._refuse(
                        request, 421, "No page is served under this name. Use the address that citebot printed."
                    )
                )
            try:
                return protect(await handle(request))
            except HTTPException as error:
                refused = protect(self._refuse(request, error.status_code, error.detail))
                refused.headers.update(error.headers or {})
                return refused

        return serve

    def require_session(self, handle: Callable[[Request, WebSession], Awaitable[Response]]) -> Handler:
        """Serve signed-in people; send others to the sign-in page."""

        async def serve(request: Request) -> Response:
            session = self.find_session(request)
            if session is not None:
                return await handle(request, session)
            if "HX-Request" in request.headers or "text/event-stream" in request.headers.get("Accept", ""):
                return Response(status_code=401, headers={"HX-Redirect": LOGIN})
            if request.method == "GET" and request.headers.get("Sec-Fetch-Site") == "cross-site":
                # Browsers send the cookie only where our own page leads here, and not from a link in a chat.
                return Response(media_type="text/html", headers={"Refresh": "0"})
            target = f"?next={request.url.path}" if request.url.path.startswith(SHARED) else ""
            return RedirectResponse(f"{LOGIN}{target}", 303)

        return self.open(serve)

    def require_form(self, handle: Callable[[Request, WebSession, Mapping[str, str]], Awaitable[Response]]) -> Handler:
        """Serve a form written for this session and sent by our page."""

        async def serve(request: Request, session: WebSession) -> Response:
            fields = await self.read_form(request)
            if not session.accepts(fields.get(CSRF_FIELD, "")):
                raise HTTPException(403, "This form has expired. Reload the page and try again.")
            return await handle(request, session, fields)

        return self.require_session(serve)

    async def read_form(self, request: Request) -> Mapping[str, str]:
        """Read a form of this page; an `HTTPException` of status 403 if another page sent it."""
        if not _is_same_origin(request):
            raise HTTPException(403, "This was sent by another page, so nothing was done.")
        if read_media_type(request.headers) != "application/x-www-form-urlencoded":
            raise HTTPException(415, "Only forms of this page are accepted.")
        try:
            body = await self._bodies.read(request)
        except HTTPException as error:
            reason = {413: "This is too long. Shorten the text.", 408: "This arrived too slowly. Try again."}
            unread = reason.get(error.status_code, "The request could not be read. Try again.")
            raise HTTPException(error.status_code, unread, error.headers) from None
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise HTTPException(400, "The form could not be read. Reload the page and try again.") from None
        return dict(fields)

    def sign_in(self, request: Request, response: Response, cookie: str) -> None:
        """Sign a browser in by a cookie that no script and no other site can use."""
        response.set_cookie(
            self._name_cookie(request), cookie, httponly=True, samesite="strict", path="/",
            max_age=round(self._sessions.seconds), secure=self._address.needs_tls(request.headers.get("Host", "")),
        )  # fmt: skip

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session of a browser."""
        name = self._name_cookie(request)
        self._sessions.close(request.cookies.get(name, ""))
        response.delete_cookie(name, path="/")

    def find_session(self, request: Request) -> WebSession | None:
        """Return the requester's session, if they are signed in."""
        return self._sessions.find(request.cookies.get(self._name_cookie(request), ""))

    def _name_cookie(self, request: Request) -> str:
        """Name the cookie; browsers send those of all servers of a host, whatever their port."""
        host = request.headers.get("Host", "")
        port = _split_host(host)[1]
        return f"{'__Host-' if self._address.needs_tls(host) else ''}citebot-{port or 'web'}"


def protect(response: Response) -> Response:
    """Make browsers only display an answer."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _is_same_origin(request: Request) -> bool:
    """Whether one of our pages has sent a form; every browser says so in one of two headers."""
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
    """Split a host from its optional port."""
    name, colon, port = host.lower().rpartition(":")
    return (name, port) if colon and not port.endswith("]") else (host.lower(), "")


@dataclass(frozen=True, kw_only=True, slots=True)
class WebSession:
    """One person in one browser. `csrf` is what their forms have to send, which no other site can read."""

    principal: Principal
    csrf: str
    ends: float

    def accepts(self, csrf: str) -> bool:
        """Whether a form was written for this session."""
        return _is_same(csrf, self.csrf)


class WebSessions:
    """The sessions of this process, of which only the checksums of their cookies are known."""

    def __init__(self, clock: Clock, *, seconds: float = SESSION_SECONDS, most: int = MAX_SESSIONS) -> None:
        self.seconds = seconds
        self._clock = clock
        self._most = most
        self._open: dict[str, WebSession] = {}

    def open(self, principal: Principal) -> str:
        """Sign a person in; return what the cookie has to hold."""
        now = self._clock.now()
        self._open = {key: session for key, session in self._open.items() if session.ends > now}
        own = [key for key, session in self._open.items() if session.principal.key == principal.key]
        for key in own[: max(0, len(own) + 1 - MAX_EACH)]:
            del self._open[key]
        while len(self._open) >= self._most:
            del self._open[next(iter(self._open))]
        cookie = secrets.token_urlsafe(_BYTES)
        csrf = secrets.token_urlsafe(_BYTES)
        self._open[_hash(cookie)] = WebSession(principal=principal, csrf=csrf, ends=now + self.seconds)
        return cookie

    def find(self, cookie: str) -> WebSession | None:
        """Return the session that a cookie names, while it lasts."""
        session = self._open.get(_hash(cookie[:_LONGEST]))
        return session if session is not None and session.ends > self._clock.now() else None

    def close(self, cookie: str) -> None:
        """Sign out."""
        self._open.pop(_hash(cookie[:_LONGEST]), None)


class LoginLink:
    """The token in the printed link: it signs in its first user, once, and is then replaced."""

    def __init__(self, announce: Callable[[], None] = lambda: None) -> None:
        self.token = secrets.token_urlsafe(_BYTES)
        self.announce = announce

    def take(self, given: str) -> bool:
        """Whether this signs in; it does so once."""
        if not _is_same(given, self.token):
            return False
        self.token = secrets.token_urlsafe(_BYTES)
        return True


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()


def _is_same(given: str, known: str) -> bool:
    return hmac.compare_digest(given[:_LONGEST].encode("utf-8", "surrogatepass"), known.encode())
