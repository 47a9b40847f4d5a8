"""Waits for something to change without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Changes:
    """A bell: `tell` wakes everyone who waits."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        """Wake everyone who waits."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float | None) -> None:
        """Wait for the next `tell`, or for so many seconds."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait({waiter}, timeout=seconds)
        finally:
            self._waiting.discard(waiter)

    async def until(self, predicate: Callable[[], T], seconds: float) -> T:
        """Wait until the predicate gives something true and return it; `TimeoutError` after so many real seconds."""
        async with asyncio.timeout(seconds):
            while not (found := predicate()):
                await self.wait(None)
        return found
