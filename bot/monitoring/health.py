"""Health probes: reports whether the process is alive and ready to answer, at /healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from bot.clock import Clock
from bot.errors import InboxError
from bot.monitoring.metrics import CONTENT_TYPE, ClusterState, ConversationMetrics
from bot.monitoring.observer import AnswerLoad
from bot.ports import Repositories
from bot.repositories.status import RepositoryState, read_state
from indexer import WatchStatus

T = TypeVar("T")
Check = Callable[[], Awaitable[None]]
Unready = Callable[[], Awaitable[str]]

SECONDS = 5.0  # a check that takes longer has failed
KEPT_SECONDS = 2.0  # for that long a result is used again: probes come as often as they like

# Headers by which a proxy names its client; their absence proves nothing.
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """The state of the process; it is ready without reasons against it."""

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
    """Asks each part whether it is ready; parts that are not open yet are not.

    `watched` returns the watcher's problems with repositories, by their names. A process that `needs_indexes` is not
    ready until it can read one.
    """

    def __init__(
        self,
        platforms: Sequence[str],
        repositories: Repositories,
        clock: Clock,
        watched: Callable[[], Mapping[str, WatchStatus]] = dict,
        *,
        needs_indexes: bool = True,
    ) -> None:
        self._remarks: dict[str, Callable[[], str]] = {}
        self._platforms: dict[str, Unready | str] = {name: f"{name} has not been reached yet." for name in platforms}
        self._repositories = repositories
        self._watched = watched
        self._needs_indexes = needs_indexes
        self._check: Check | None = None
        self._ending = False
        self._store = _Cached(clock, self._check_store)
        self._all = _Cached(clock, self._compute_readiness)

    def set_waiting(self, platform: str, reason: str) -> None:
        """Record why a platform is not connected yet."""
        self._platforms[platform] = reason

    def set_listening(self, platform: str, unready: Unready, remark: Callable[[], str] = str) -> None:
        """Ask a connected platform itself from now on."""
        self._platforms[platform] = unready
        self._remarks[platform] = remark

    def set_store(self, check: Check | None) -> None:
        """Check the message store in this way from now on, or stop; the check raises `InboxError`."""
        self._check = check

    def set_ended(self) -> None:
        """Record that the process accepts no more messages."""
        self._ending = True

    async def store(self) -> str:
        """Return why messages cannot be stored; empty if they can, or before any are received."""
        return await self._store.get()

    async def check_readiness(self) -> Readiness:
        """Return the state of everything."""
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
        platforms = {
            name: unready if isinstance(unready, str) else await unready() for name, unready in self._platforms.items()
        }
        watched = self._watched()
        repositories = await asyncio.gather(
            *(self._read_repository_state(name, watched) for name in self._repositories.list_names())
        )
        reasons = [store, *platforms.values(), _explain_unreadable(repositories) if self._needs_indexes else ""]
        if self._ending:
            reasons.insert(0, "citebot is shutting down: it finishes its answers and accepts nothing new.")
        return Readiness(
            reasons=tuple(filter(None, reasons)),
            platforms=platforms,
            remarks={name: remark() for name, remark in self._remarks.items()},
            store=store,
            repositories=repositories,
        )

    async def _read_repository_state(self, name: str, watched: Mapping[str, WatchStatus]) -> RepositoryState:
        try:
            async with asyncio.timeout(SECONDS):
                return await read_state(name, lambda: self._repositories.status(name), watched)
        except TimeoutError:
            return RepositoryState(name=name, state="failed", sentence=f"Its index took over {SECONDS:g} s to answer.")


class _Cached(Generic[T]):
    """A briefly cached result; only one caller computes it at a time."""

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


def _explain_unreadable(repositories: Sequence[RepositoryState]) -> str:
    """Explain that there is nothing to answer from; empty while one repository can be read.

    One not yet indexed does not count: the next question indexes it.
    """
    if all(each.state == "failed" and not each.is_usable for each in repositories):
        return "No repository can be read: " + " ".join(each.sentence for each in repositories)
    return ""


@dataclass(kw_only=True)
class ProbeHandlers:
    """Answers the probes. Trusted requests get names, sentences and figures; others only yes or no.

    The address of a request does not identify its sender: a proxy on this machine forwards requests
    from this machine. So the public server trusts only the token, and the one for this machine has
    its own port.
    """

    health: Health
    metrics: ConversationMetrics
    clock: Clock
    mask: Callable[[str], str]
    token: str = ""
    load: Callable[[], AnswerLoad] = lambda: AnswerLoad(under_way=0, waiting=0)
    read_cluster: Callable[[], Awaitable[ClusterState]] | None = None  # where several processes share the work

    def join(self, router: Router) -> None:
        """Add the paths to the public ones."""
        self._add(router, self._has_token)

    def join_local(self, router: Router) -> None:
        """Add the paths to a server on a separate loopback port."""
        self._add(router, is_local)

    def _add(self, router: Router, trust: Callable[[Request], bool]) -> None:
        async def healthz(request: Request) -> Response:
            reason = await self.health.store()
            record: dict[str, Any] = {"alive": not reason}
            return self._make_json_response(
                record | ({"reasons": [reason]} if reason and trust(request) else {}), ok=not reason
            )

        async def readyz(request: Request) -> Response:
            found = await self.health.check_readiness()
            record = found.record(self.clock.now()) if trust(request) else {"ready": found.ready}
            if trust(request) and (cluster := await self._find_cluster()) is not None:
                record |= {"cluster": cluster.record()}
            return self._make_json_response(record, ok=found.ready)

        async def metrics(request: Request) -> Response:
            if trust(request):
                found = await self.health.check_readiness()
                self.metrics.show_cluster(await self._find_cluster())
                body = self.metrics.text(self.load(), found.repositories, self.clock.now())
                return Response(body, headers={"Content-Type": CONTENT_TYPE})
            if self.token:
                raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
            raise HTTPException(404)

        router.routes += [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]

    async def _find_cluster(self) -> ClusterState | None:
        """Return the state shared by processes; nothing if it is unknown at the moment, which already is a reason."""
        if self.read_cluster is None:
            return None
        try:
            async with asyncio.timeout(SECONDS):
                return await self.read_cluster()
        except (InboxError, TimeoutError):
            return None

    def _has_token(self, request: Request) -> bool:
        given = request.headers.getlist("Authorization")
        wanted = f"Bearer {self.token}".encode()
        return bool(self.token) and len(given) == 1 and hmac.compare_digest(given[0].encode("latin-1"), wanted)

    def _make_json_response(self, record: dict[str, Any], *, ok: bool) -> Response:
        shown = _mask_record(record, self.mask)
        return JSONResponse(shown, 200 if ok else 503, {"Cache-Control": "no-store"})


def is_local(request: Request) -> bool:
    """Whether the request comes from this machine, is meant for it, and was not forwarded.

    A page in a browser of this machine can make any name lead here, but the request then contains
    that name.
    """
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        asked_for = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
        near = ipaddress.ip_address(request.client.host if request.client else "").is_loopback
        return near and (asked_for == "localhost" or ipaddress.ip_address(asked_for).is_loopback)
    except ValueError:
        return False


def _mask_record(value: Any, mask: Callable[[str], str]) -> Any:
    """Mask secrets in every text of a record."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: _mask_record(each, mask) for key, each in value.items()}
    return [_mask_record(each, mask) for each in value] if isinstance(value, list) else value
