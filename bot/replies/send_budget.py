"""Limits the calls to a platform: one budget per method and workspace, shared fairly by all replies."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Self

from bot.clock import Clock
from bot.messages import Place, RateLimit, SendMethod
from bot.ports import ChatPlatform

# An answer is changed a little less often than it could be, so that there is room left for those that are finished.
PACE = 1.1
_TINY = 1e-6
_MAX_IDLE = 1_000  # buckets that are kept though nothing has been sent recently: threads come and go


class SendBudget:
    """Tokens for the calls of one platform.

    A token comes back when the time of its rate is over, so the platform's own count never exceeds
    its limit; urgent calls (a new message, a finished answer) precede all others, otherwise the
    order of asking counts. `on_hold` is called whenever the platform has asked to wait.
    """

    def __init__(
        self,
        rates: Mapping[SendMethod, RateLimit],
        clock: Clock,
        on_hold: Callable[[SendMethod], None] = lambda _: None,
    ) -> None:
        self._rates = rates
        self._clock = clock
        self._on_hold = on_hold
        self._buckets: dict[tuple[SendMethod, str], _Bucket] = {}
        self._growing: dict[tuple[SendMethod, str], int] = {}

    async def take(self, method: SendMethod, place: Place, *, urgent: bool = False) -> None:
        """Wait until a call may be made, and count it."""
        await self._get_bucket(method, place).take(urgent=urgent)

    def try_take(self, method: SendMethod, place: Place) -> bool:
        """Count a call if it may be made immediately; methods without a rate always may."""
        return self._get_bucket(method, place).try_take()

    def take_spare(self, method: SendMethod, place: Place) -> bool:
        """Count an optional call, if answers leave room: none grows, and half of the rate is unspent."""
        growing = self._growing.get(self._make_key(method, place), 0)
        return not growing and self._get_bucket(method, place).take_spare()

    def hold(self, method: SendMethod, place: Place, seconds: float) -> None:
        """Stop all calls for a time, at the platform's request."""
        self._on_hold(method)
        self._get_bucket(method, place).hold(seconds)

    @contextmanager
    def count_growing(self, method: SendMethod, place: Place) -> Iterator[None]:
        """Count an answer that grows by a method while the context is open; all of them share the rate."""
        key = self._make_key(method, place)
        self._growing[key] = self._growing.get(key, 0) + 1
        try:
            yield
        finally:
            self._growing[key] -= 1
            if not self._growing[key]:
                del self._growing[key]

    def pace(self, method: SendMethod, place: Place) -> float:
        """Return how many seconds each growing answer should leave between its calls."""
        rate = self._rates.get(method)
        answers = self._growing.get(self._make_key(method, place), 0)
        return rate.seconds / rate.calls * answers * PACE if rate else 0.0

    def _get_bucket(self, method: SendMethod, place: Place) -> _Bucket:
        key = self._make_key(method, place)
        if key not in self._buckets:
            if len(self._buckets) >= _MAX_IDLE:
                self._buckets = {key: bucket for key, bucket in self._buckets.items() if not bucket.is_idle}
            self._buckets[key] = _Bucket(self._rates.get(method), self._clock)
        return self._buckets[key]

    def _make_key(self, method: SendMethod, place: Place) -> tuple[SendMethod, str]:
        rate = self._rates.get(method)
        parts = {"workspace": 1, "channel": 2, "thread": 3}[rate.per if rate else "workspace"]
        return method, "/".join((place.workspace, place.channel, place.thread)[:parts])


@dataclass(order=True)
class _Ticket:
    """A place in the queue: urgent ones first, then by arrival."""

    later: bool
    number: int
    turn: asyncio.Event = field(compare=False, default_factory=asyncio.Event)
    left: bool = field(compare=False, default=False)


class _Bucket:
    """The tokens of one method in one place, and the queue for them."""

    def __init__(self, rate: RateLimit | None, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._spent: deque[float] = deque()
        self._held_until = 0.0
        self._line: list[_Ticket] = []
        self._numbers = count()

    @property
    def is_idle(self) -> bool:
        """Whether a new bucket would behave the same."""
        return not self._line and self._delay() <= 0 and not self._spent

    async def take(self, *, urgent: bool) -> None:
        ticket = _Ticket(not urgent, next(self._numbers))
        heappush(self._line, ticket)
        try:
            while (delay := self._delay()) > 0 or self._line[0] is not ticket:
                if self._line[0] is ticket:
                    await self._clock.sleep(delay)
                else:
                    await ticket.turn.wait()
                    ticket.turn.clear()
            self._spend()
        finally:
            ticket.left = True
            while self._line and self._line[0].left:
                heappop(self._line)
            if self._line:
                self._line[0].turn.set()

    def try_take(self) -> bool:
        free = not self._line and self._delay() <= 0
        if free:
            self._spend()
        return free

    def take_spare(self) -> bool:
        free = not self._line and self._delay() <= 0
        return free and (self._rate is None or 2 * len(self._spent) < self._rate.calls) and self.try_take()

    def hold(self, seconds: float) -> None:
        self._held_until = max(self._held_until, self._clock.now() + seconds)

    def _delay(self) -> float:
        now = self._clock.now()
        if self._rate is None:
            return max(0.0, self._held_until - now)
        while self._spent and self._spent[0] + self._rate.seconds <= now + _TINY:
            self._spent.popleft()
        full = len(self._spent) >= self._rate.calls
        free_at = self._spent[0] + self._rate.seconds if full else now
        return max(free_at, self._held_until) - now

    def _spend(self) -> None:
        if self._rate is not None:
            self._spent.append(self._clock.now())


@dataclass
class ReplyTransport:
    """The shared state of all replies on one platform: the budget, and the workspaces known to have no streams."""

    platform: ChatPlatform
    budget: SendBudget
    clock: Clock
    without_streams: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, platform: ChatPlatform, clock: Clock, on_hold: Callable[[SendMethod], None] = lambda _: None) -> Self:
        """Make a transport with a budget of the platform's rates."""
        return cls(platform=platform, budget=SendBudget(platform.capabilities.rates, clock, on_hold), clock=clock)

    def may_stream(self, place: Place) -> bool:
        """Whether a stream can begin here now; counts it."""
        is_offered = self.platform.capabilities.streams and place.workspace not in self.without_streams
        return is_offered and self.budget.try_take("stream_start", place)
