"""The time, as a value that is passed in: tests set it themselves."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


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
