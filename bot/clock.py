"""The time, as something that is handed in: tests turn the hands themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Tells the time in seconds since the epoch, and waits."""

    def now(self) -> float:
        """Return the time."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the time."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Await the work; `TimeoutError` once the seconds are over, after the work was cancelled and has ended."""
    task, timer = asyncio.create_task(work), asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()
        timer.cancel()
        await asyncio.wait({task, timer})
