"""Delivers events from Slack to the app: each until it is acknowledged, four times at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON

Kind = Literal["events_api", "slash_commands", "interactive"]
ACK_WITHIN = 3.0
RETRY_DELAYS = (0.0, 60.0, 300.0)  # seconds before the first, second and third retry


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How an attempt ended: acknowledged with an optional answer, or not, for a reason."""

    acked: bool
    reason: str = ""
    answer: JSON = field(default_factory=dict)
    final: bool = False  # the app asked for no further tries


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One try: its number (0 is the first), when, over which connection or URL, and how it ended."""

    number: int
    at: float
    by: str
    outcome: Outcome


@dataclass(kw_only=True, slots=True)
class Delivery:
    """An event, command or interaction on its way to the app."""

    kind: Kind
    payload: JSON
    attempts: list[Attempt] = field(default_factory=list)
    acked: bool = False
    dropped: bool = False  # all tries are used up
    on_answer: Callable[[JSON], None] | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing more will be sent."""
        return self.acked or self.dropped

    @property
    def answer(self) -> JSON:
        """What the acknowledgement carried."""
        return self.attempts[-1].outcome.answer if self.acked else {}


class Transport(Protocol):
    """A way to the app."""

    async def attempt(self, delivery: Delivery, number: int, reason: str) -> tuple[str, Outcome]:
        """Send it once and wait for the acknowledgement; return by which way it went, and how it ended."""


class Deliveries:
    """Sends over the transport of the moment, and remembers everything that was sent."""

    def __init__(self, clock: Clock, changes: Changes, transport: Transport) -> None:
        self.transport = transport
        self.sent: list[Delivery] = []
        self._clock = clock
        self._changes = changes
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, kind: Kind, payload: JSON, on_answer: Callable[[JSON], None] | None = None) -> Delivery:
        """Send in the background. Only events are tried again. `on_answer` gets what the acknowledgement carries."""
        delivery = Delivery(kind=kind, payload=payload, on_answer=on_answer)
        self.sent.append(delivery)
        self._start(self._deliver(delivery, RETRY_DELAYS if kind == "events_api" else ()))
        return delivery

    async def resend(self, delivery: Delivery) -> None:
        """Send once more what was delivered already, as Slack does when it missed the acknowledgement."""
        await self._try(delivery, len(delivery.attempts), "timeout")

    async def close(self) -> None:
        """Stop sending; what went wrong in the fake itself is raised."""
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    async def _deliver(self, delivery: Delivery, delays: tuple[float, ...]) -> None:
        outcome = await self._try(delivery, 0, "")
        for number, delay in enumerate(delays, start=1):
            if outcome.acked or outcome.final:
                break
            await self._clock.sleep(delay)
            outcome = await self._try(delivery, number, outcome.reason)
        delivery.dropped = not delivery.acked
        if delivery.answer and delivery.on_answer is not None:
            delivery.on_answer(delivery.answer)
        self._changes.tell()

    async def _try(self, delivery: Delivery, number: int, reason: str) -> Outcome:
        at = self._clock.now()
        by, outcome = await self.transport.attempt(delivery, number, reason)
        delivery.attempts.append(Attempt(number=number, at=at, by=by, outcome=outcome))
        delivery.acked = delivery.acked or outcome.acked
        self._changes.tell()
        return outcome
