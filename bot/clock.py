"""The time, as a value that is passed in: tests set it themselves."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
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


def read_uptime() -> tuple[str, float] | None:
    """Return the system's name for the time since the machine came up, and how many seconds that has lasted.

    The seconds pass evenly and are the same for all processes, whatever is done to the clock. None if the system
    tells nothing of the kind.
    """
    if sys.platform != "linux":
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # in a sandbox
        return None
    return boot, time.clock_gettime(time.CLOCK_BOOTTIME)
