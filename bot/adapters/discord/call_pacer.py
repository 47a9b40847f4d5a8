"""Keeps all calls together below what Discord allows a bot in a second; refusals count towards a ban."""

from __future__ import annotations

import asyncio
from collections import deque

from bot.clock import Clock

MOST, SECONDS = 40, 1.0  # Discord allows fifty; the rest is for what discord.py calls by itself


class CallPacer:
    """Lets a fixed number of calls through in a second, in the order in which they came."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=MOST)
        self._lock = asyncio.Lock()

    async def acquire(self) -> None:
        """Wait until one more call may be made."""
        async with self._lock:
            if len(self._recent) == MOST:
                await self._clock.sleep(self._recent[0] + SECONDS - self._clock.now())
            self._recent.append(self._clock.now())
