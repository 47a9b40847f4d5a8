"""Whether the process lives and is ready to answer: the message store, the platforms, the repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bot.clock import Clock
from bot.errors import InboxError
from bot.ports import Repositories
from bot.repository_states import RepositoryState, WatchState, read_state

T = TypeVar("T")
Check = Callable[[], Awaitable[None]]
Unready = Callable[[], Awaitable[str]]

SECONDS = 5.0  # what takes longer to tell is not well
KEPT_SECONDS = 2.0  # for so long what was found out is told again: probes come as often as they like


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
