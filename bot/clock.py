"""The time of this process, which tests move, and warnings that are given only so often."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import Protocol

WARNING_SECONDS = 60.0


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
    """Return the name of the system's uptime clock, and its seconds.

    The seconds pass evenly and are the same for all processes, whatever happens to the wall clock.
    None if the system has no such clock.
    """
    if sys.platform != "linux":
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # in a sandbox
        return None
    return boot, time.clock_gettime(time.CLOCK_BOOTTIME)


class RareWarnings:
    """Warns in a log, and says with the next warning how many were left out since the last one."""

    def __init__(self, log: logging.Logger, *, every: float = WARNING_SECONDS) -> None:
        self._log = log
        self._every = every
        self._last = -every
        self._left_out = 0

    def warn(self, message: str, *args: object) -> None:
        """Warn, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._last < self._every:
            self._left_out += 1
            return
        more = f" ({self._left_out} more like this since the last warning)" if self._left_out else ""
        self._last, self._left_out = now, 0
        self._log.warning(message + "%s", *args, more)
