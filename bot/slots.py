"""How many answers are worked on at a time; whoever comes later waits in line and knows where."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """Places for so many answers at a time, given in the order of asking."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._most = most
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def before(self) -> int:
        """How many answers come before the next one that asks; 0 where it can begin at once."""
        return 0 if self._free > 0 else self._most + len(self._line)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Hold a place, waiting for it in line."""
        await self._take()
        try:
            yield
        finally:
            self._give()

    async def _take(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was given in the same moment
                self._give()
            elif turn in self._line:
                self._line.remove(turn)
            raise

    def _give(self) -> None:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
