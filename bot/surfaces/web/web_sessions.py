"""Sessions of the page, each named by a cookie, and the link that signs in the person at the machine."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from bot.clock import Clock
from bot.surfaces.principals import Principal

SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 1_000
MOST_EACH = 20  # of one person
_BYTES = 32
_LONGEST = 200  # characters of what a browser sends that are looked at


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

    def __init__(self, clock: Clock, *, seconds: float = SESSION_SECONDS, most: int = MOST_SESSIONS) -> None:
        self.seconds = seconds
        self._clock = clock
        self._most = most
        self._open: dict[str, WebSession] = {}

    def open(self, principal: Principal) -> str:
        """Sign a person in; return what the cookie has to hold."""
        now = self._clock.now()
        self._open = {key: session for key, session in self._open.items() if session.ends > now}
        own = [key for key, session in self._open.items() if session.principal.key == principal.key]
        for key in own[: max(0, len(own) + 1 - MOST_EACH)]:
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
