"""The time by which the fake lives: real time that a test can push forward, or time that only a test moves."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.fakes.loopback.changes import Changes


class Clock:
    """Seconds since the epoch. A frozen clock stands still until `advance` is called."""

    def __init__(self, *, frozen: bool = False, start: float | None = None) -> None:
        self.frozen = frozen
        self._offset = 0.0 if start is None else start - time.time()
        self._stopped_at = time.time() + self._offset
        self._moved = Changes()
        self._slept = Changes()
        self._deadlines: list[float] = []

    def now(self) -> float:
        """Tell the time."""
        return self._stopped_at if self.frozen else time.time() + self._offset

    def advance(self, seconds: float) -> None:
        """Push the time forward; anyone who sleeps until then wakes up."""
        self._offset += seconds
        self._stopped_at += seconds
        self._moved.tell()

    async def sleep(self, seconds: float) -> None:
        """Wait until the time has come, on its own or by `advance`."""
        deadline = self.now() + seconds
        self._deadlines.append(deadline)
        self._slept.tell()
        try:
            while (remaining := deadline - self.now()) > 0:
                await self._moved.wait(None if self.frozen else remaining)
        finally:
            self._deadlines.remove(deadline)

    async def jump(self) -> None:
        """Go to the next moment that someone sleeps for, after waiting until there is one."""
        while not (ahead := [deadline for deadline in self._deadlines if deadline > self.now()]):
            await self._slept.wait(None)
        self.advance(min(ahead) - self.now())

    async def within(self, seconds: float, future: asyncio.Future[bool]) -> bool:
        """Wait for the future; False when the time has passed before it was done."""
        alarm = asyncio.ensure_future(self.sleep(seconds))
        both: set[asyncio.Future[Any]] = {alarm, future}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return future.done()
        finally:
            alarm.cancel()
