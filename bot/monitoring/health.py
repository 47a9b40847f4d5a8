"""Whether the process is alive and ready to answer, served at /healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from aiohttp import web

from bot.clock import Clock
from bot.errors import InboxError
from bot.monitoring.metrics import CONTENT_TYPE, ConversationMetrics
from bot.monitoring.observer import AnswerLoad
from bot.ports import Repositories
from bot.repositories.status import RepositoryState, WatchState, read_state

T = TypeVar("T")
Check = Callable[[], Awaitable[None]]
Unready = Callable[[], Awaitable[str]]

SECONDS = 5.0  # what takes longer to tell is not well
KEPT_SECONDS = 2.0  # for so long what was found out is told again: probes come as often as they like

# A proxy says by these that somebody else stands behind it; that none of them is there proves nothing.
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")
UNKNOWN_PATH = "other"

Trust = Callable[[web.Request], bool]
Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What there is to say of the process; it is ready where there are no reasons against it."""

    reasons: tuple[str, ...]
    platforms: Mapping[str, str]
    remarks: Mapping[str, str]
    store: str
    repositories: Sequence[RepositoryState]

    @property
    def ready(self) -> bool:
        """Whether questions can come in and be answered."""
        return not self.reasons

    def record(self, now: float) -> dict[str, Any]:
        """Describe it to a probe."""
        return {
            "ready": self.ready,
            "reasons": list(self.reasons),
            "platforms": {
                name: {"ready": not why, "sentence": why or self.remarks.get(name, "")}
                for name, why in self.platforms.items()
            },
            "store": {"ready": not self.store, "sentence": self.store},
            "repositories": [each.record(now) for each in self.repositories],
        }


class Health:
    """Asks those who know how they are; what is not there yet is not ready.

    `watched` tells what whoever watches the repositories says of them, by their names.
    """

    def __init__(
        self,
        platforms: Sequence[str],
        repositories: Repositories,
        clock: Clock,
        watched: Callable[[], Mapping[str, WatchState]] = dict,
    ) -> None:
        self._remarks: dict[str, Callable[[], str]] = {}
        self._platforms: dict[str, Unready | str] = {name: f"{name} has not been reached yet." for name in platforms}
        self._repositories = repositories
        self._watched = watched
        self._check: Check | None = None
        self._ending = False
        self._store = _Kept(clock, self._check_store)
        self._all = _Kept(clock, self._compute_readiness)

    def set_waiting(self, platform: str, reason: str) -> None:
        """Take note of why a platform is not there yet."""
        self._platforms[platform] = reason

    def set_listening(self, platform: str, unready: Unready, remark: Callable[[], str] = str) -> None:
        """Ask a platform from now on, which is listened to."""
        self._platforms[platform] = unready
        self._remarks[platform] = remark

    def set_store(self, check: Check | None) -> None:
        """Check the message store in this way from now on, or no more; the check raises `InboxError`."""
        self._check = check

    def set_ended(self) -> None:
        """The process takes in nothing more."""
        self._ending = True

    async def store(self) -> str:
        """Say why messages cannot be stored; nothing where they can, or where it is not time for them."""
        return await self._store.get()

    async def readiness(self) -> Readiness:
        """Find out how everything is."""
        return await self._all.get()

    async def _check_store(self) -> str:
        if self._check is None:
            return ""
        try:
            async with asyncio.timeout(SECONDS):
                await self._check()
        except InboxError as error:
            return str(error)
        except TimeoutError:
            return "The message database does not answer. Check its disk."
        return ""

    async def _compute_readiness(self) -> Readiness:
        store = await self.store()
        platforms = {name: await _ask_platform(each) for name, each in self._platforms.items()}
        watched = self._watched()
        repositories = await asyncio.gather(
            *(self._read_repository_state(name, watched) for name in self._repositories.list_names())
        )
        reasons = [store, *platforms.values(), _usable(repositories)]
        if self._ending:
            reasons.insert(0, "citebot is shutting down: it finishes its answers and accepts nothing new.")
        return Readiness(
            reasons=tuple(filter(None, reasons)),
            platforms=platforms,
            remarks={name: remark() for name, remark in self._remarks.items()},
            store=store,
            repositories=repositories,
        )

    async def _read_repository_state(self, name: str, watched: Mapping[str, WatchState]) -> RepositoryState:
        try:
            async with asyncio.timeout(SECONDS):
                return await read_state(name, lambda: self._repositories.status(name), watched)
        except TimeoutError:
            return RepositoryState(name=name, state="failed", sentence=f"Its index took over {SECONDS:g} s to answer.")


class _Kept(Generic[T]):
    """What was found out a moment ago is told again; only one looks at a time."""

    def __init__(self, clock: Clock, find: Callable[[], Awaitable[T]]) -> None:
        self._clock = clock
        self._find = find
        self._looking = asyncio.Lock()
        self._last: tuple[float, T] | None = None

    async def get(self) -> T:
        async with self._looking:
            now = self._clock.now()
            if self._last is None or not 0 <= now - self._last[0] < KEPT_SECONDS:
                self._last = now, await self._find()
            return self._last[1]


async def _ask_platform(platform: Unready | str) -> str:
    return platform if isinstance(platform, str) else await platform()


def _usable(repositories: Sequence[RepositoryState]) -> str:
    """One repository that fails is told of; where all do, there is nothing to answer from.

    One that is not indexed yet is no reason: the question that comes in has it indexed.
    """
    if all(each.state == "failed" and not each.is_usable for each in repositories):
        return "No repository can be read: " + " ".join(each.sentence for each in repositories)
    return ""


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
