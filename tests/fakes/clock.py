"""A clock whose hands are turned by the test; nothing that waits for it takes any time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
SETTLING = 25  # rounds of the loop that what was woken gets before the next hour strikes


class FakeClock:
    """Starts at a thousand seconds; `run` turns it on whenever everybody waits."""

    def __init__(self, now: float = 1_000.0) -> None:
        self._now = now
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self._now + max(0.0, seconds), next(self._order), woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Let that much time pass, waking anyone who waits on the way."""
        until = self._now + seconds
        await self.settled()
        while self._sleepers and self._sleepers[0][0] <= until:
            self._strike()
            await self.settled()
        self._now = until

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, passing over the time in which nothing happens."""
        task = asyncio.create_task(work)
        while not task.done():
            await self.settled()
            if not task.done():
                assert self._sleepers, "everybody waits, and not for the clock"
                self._strike()
        return task.result()

    async def settled(self) -> None:
        for _ in range(SETTLING):
            await asyncio.sleep(0)

    def _strike(self) -> None:
        at, _, woken = heapq.heappop(self._sleepers)
        self._now = max(self._now, at)
        woken.set()
