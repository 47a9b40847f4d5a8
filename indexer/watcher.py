"""Notices that a repository has a new commit, by being told, asking its host or looking, and has it indexed."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from indexer.errors import IndexerError, RemoteError, StorageLocked
from indexer.types import BranchHead, IndexStatus, RefreshReport, RemoteState

log = logging.getLogger(__name__)

_UNEXPECTED = "An internal error occurred; see the log. citebot will try again."


class WatcherClock(Protocol):
    """Tells the time in seconds, and waits."""

    def now(self) -> float:
        """Return the time."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class WatchedSource(Protocol):
    """A watched repository."""

    @property
    def name(self) -> str:
        """Its name for people."""

    async def newest(self) -> BranchHead:
        """Fetch the newest commit, and return it; `IndexerError` gives the reason of a failure."""


class WatchedIndexes(Protocol):
    """The indexes of the repositories, by name."""

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed."""

    async def index_here(self, name: str) -> RefreshReport:
        """Index the newest local commit, joining a refresh in progress."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchIntervals:
    """Intervals in seconds: hosts are asked, local files looked at, and one repository refreshed at most.

    Errors double the time to the next attempt, up to `ceiling`. A push that a host told of but does not show yet is
    looked for again after `echo`.
    """

    poll: float = 60.0
    look: float = 1.0
    gap: float = 2.0
    retry: float = 5.0
    ceiling: float = 900.0
    echo: float = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchStatus:
    """The state of one repository; `sentence` says what is wrong or worth knowing, else it is empty.

    Times are in seconds since the epoch.
    """

    repository: str
    state: RemoteState
    sentence: str
    branch: str | None
    commit: str | None
    indexed: str | None
    looked_at: float | None
    indexed_at: float | None
    failures: int
    next_look: float | None


@dataclass(kw_only=True)
class _Watch:
    """One repository and how far it has come."""

    source: WatchedSource
    every: float
    ceiling: float  # seconds between looks that fail
    told: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    tip: BranchHead | None = None
    indexed: str | None = None
    tried: str | None = None  # the commit that was to be indexed last
    missed: str | None = None  # the commit that a refresh ended without
    announced: str | None = None
    echoes: int = 0
    look_error: IndexerError | None = None
    look_failures: int = 0
    refresh_error: str = ""
    refresh_state: RemoteState = "failed"
    refresh_failures: int = 0
    retry_at: float = 0.0
    began: float = float("-inf")
    looked_at: float | None = None
    indexed_at: float | None = None
    next_look: float | None = None


class Watcher:
    """Keeps the indexes at the newest commits for as long as `run` runs; whatever fails is tried again.

    Hosts are polled, local repositories looked at. Pushes that come while a refresh is in progress become one.
    """

    def __init__(
        self,
        indexes: WatchedIndexes,
        clock: WatcherClock,
        *,
        polled: Sequence[WatchedSource] = (),
        local: Sequence[WatchedSource] = (),
        pace: WatchIntervals | None = None,
        at_once: int = 2,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._indexes = indexes
        self._clock = clock
        self._pace = pace or WatchIntervals()
        self._slots = asyncio.Semaphore(at_once)
        self._jitter = jitter
        watches = [_Watch(source=each, every=self._pace.poll, ceiling=self._pace.ceiling) for each in polled]
        watches += [_Watch(source=each, every=self._pace.look, ceiling=self._pace.look) for each in local]
        self._watches = {watch.source.name: watch for watch in watches}
        for watch in watches:
            watch.settled.set()  # until somebody tells of a push

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watch in self._watches.values():
                group.create_task(self._follow(watch))

    def notify(self, repository: str, ref: str, commit: str | None = None) -> None:
        """Take note that somebody pushed, as a host says; `commit` is what the ref should show, if it is known."""
        watch = self._watches.get(repository)
        if watch is None or (commit is not None and commit == watch.indexed):
            return
        log.info("%s: %s was pushed", repository, ref)
        watch.announced, watch.echoes = commit, 3
        watch.settled.clear()
        watch.told.set()

    async def settle(self, repository: str) -> None:
        """Wait until what was pushed to a repository so far is indexed, or has failed to be."""
        if (watch := self._watches.get(repository)) is not None:
            await watch.settled.wait()

    def sentence(self, repository: str) -> str:
        """Describe a problem with a repository, or something worth knowing; empty if all is well."""
        watch = self._watches.get(repository)
        return _status(watch).sentence if watch else ""

    def status(self) -> tuple[WatchStatus, ...]:
        """Describe every repository."""
        return tuple(_status(watch) for watch in self._watches.values())

    async def _follow(self, watch: _Watch) -> None:
        while True:
            await self._round(watch)
            if not watch.told.is_set():
                watch.settled.set()
            await self._pause(watch)

    async def _read_indexed_commit(self, watch: _Watch) -> str | None:
        try:
            return (await self._indexes.status(watch.source.name)).commit
        except IndexerError as error:
            log.warning("%s: %s", watch.source.name, error)
            return None

    async def _round(self, watch: _Watch) -> None:
        """Look, and have indexed what is new; a failure is noted and never ends the watch."""
        watch.told.clear()
        try:
            if watch.looked_at is None:
                watch.indexed = await self._read_indexed_commit(watch)
            tip = await self._fetch_tip(watch)
            if tip is not None and tip.commit == watch.indexed:
                _clear_refresh_error(watch)
            # A tip that failed waits for its time, another one does not.
            elif tip is not None and (tip.commit != watch.tried or self._clock.now() >= watch.retry_at):
                await self._refresh(watch, tip)
        except Exception:
            log.exception("%s: the check failed", watch.source.name)
            self._put_off(watch, _UNEXPECTED)

    async def _fetch_tip(self, watch: _Watch) -> BranchHead | None:
        try:
            watch.tip = await watch.source.newest()
        except IndexerError as error:
            if str(error) != str(watch.look_error):
                log.warning("%s", error)
            watch.look_error = error
            watch.look_failures += 1
            return None
        finally:
            watch.looked_at = self._clock.now()
        watch.look_error, watch.look_failures = None, 0
        return watch.tip

    async def _refresh(self, watch: _Watch, tip: BranchHead) -> None:
        async with self._slots:
            watch.began, watch.tried = self._clock.now(), tip.commit
            try:
                report = await self._indexes.index_here(watch.source.name)
            except IndexerError as error:
                self._put_off(watch, str(error), "indexing elsewhere" if isinstance(error, StorageLocked) else "failed")
                return
        _clear_refresh_error(watch)
        watch.indexed, watch.indexed_at = report.commit, self._clock.now()
        if report.commit == tip.commit:
            return
        # A refresh that was joined may have begun before this commit was there: once more, but not for ever.
        if watch.missed == tip.commit:
            watch.indexed = tip.commit
        else:
            watch.missed = tip.commit
            watch.told.set()

    def _put_off(self, watch: _Watch, why: str, state: RemoteState = "failed") -> None:
        """Record why a commit was not indexed, and when to try again."""
        if why != watch.refresh_error:
            log.warning("%s: %s", watch.source.name, why)
        watch.refresh_error, watch.refresh_state = why, state
        watch.refresh_failures += 1
        delay = _compute_backoff(self._pace.retry, watch.refresh_failures - 1, self._pace.ceiling)
        watch.retry_at = self._clock.now() + delay

    async def _pause(self, watch: _Watch) -> None:
        """Wait until the next look is due or somebody tells of a push, and in any case for the gap."""
        delay = self._delay(watch)
        watch.next_look = self._clock.now() + delay
        tasks = [asyncio.ensure_future(each) for each in (watch.told.wait(), self._clock.sleep(delay))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        rest = watch.began + self._pace.gap - self._clock.now()
        if rest > 0:
            await self._clock.sleep(rest)

    def _delay(self, watch: _Watch) -> float:
        until_retry = max(watch.retry_at - self._clock.now(), 0.0)
        if watch.refresh_error == _UNEXPECTED and until_retry:
            return until_retry
        # Up to a fifth less or more, so that many repositories do not ask their host at the same time
        delay = _compute_backoff(watch.every, max(watch.look_failures - 1, 0), watch.ceiling) * (
            0.8 + 0.4 * self._jitter()
        )
        if watch.refresh_failures and not watch.look_failures:
            delay = min(delay, until_retry)
        if watch.echoes and watch.announced not in {None, watch.tip.commit if watch.tip else None}:
            watch.echoes -= 1
            delay = min(delay, self._pace.echo)
        return delay


def _compute_backoff(seconds: float, times: int, ceiling: float) -> float:
    return min(seconds * 2.0 ** min(times, 30), ceiling)


def _clear_refresh_error(watch: _Watch) -> None:
    """Forget what went wrong with indexing: it is done."""
    watch.refresh_error, watch.refresh_failures, watch.retry_at = "", 0, 0.0


def _status(watch: _Watch) -> WatchStatus:
    tip = watch.tip
    state: RemoteState = watch.refresh_state if watch.refresh_error else tip.state if tip else "ready"
    sentence = watch.refresh_error or (tip.remark if tip else "")
    if watch.look_error is not None:
        state = watch.look_error.state if isinstance(watch.look_error, RemoteError) else "failed"
        sentence = str(watch.look_error)
    return WatchStatus(
        repository=watch.source.name,
        state=state,
        sentence=sentence,
        branch=tip.branch if tip else None,
        commit=tip.commit if tip else None,
        indexed=watch.indexed,
        looked_at=watch.looked_at,
        indexed_at=watch.indexed_at,
        failures=watch.look_failures + watch.refresh_failures,
        next_look=watch.next_look,
    )
