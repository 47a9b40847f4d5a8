"""The order of answers: one at a time in a conversation, so many at a time in all; the others wait in line."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

QueueMoved = Callable[[int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Waiting:
    """Somebody in line, and whom to tell that the line has moved."""

    turn: asyncio.Future[None]
    moved: QueueMoved


class AnswerQueue:
    """Places for so many answers at a time, given in the order of asking."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._most = most
        self._line: deque[_Waiting] = deque()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def before(self) -> int:
        """How many answers come before the next one that asks; 0 where it can begin at once."""
        return 0 if self._free > 0 else self._most + len(self._line)

    @property
    def places_in_use(self) -> int:
        """How many places are taken."""
        return self._most - self._free

    def lock_conversation(self, conversation: str) -> asyncio.Lock:
        """Return the lock of a conversation, which is kept for as long as anybody holds it or waits for it."""
        return self._locks.setdefault(conversation, asyncio.Lock())

    @asynccontextmanager
    async def hold_place(self, moved: QueueMoved = lambda _: None) -> AsyncIterator[None]:
        """Hold a place, waiting for it in line; `moved` is told how many answers come before, each time it changes."""
        await self._take(moved)
        try:
            yield
        finally:
            self._give()

    async def _take(self, moved: QueueMoved) -> None:
        if self._free > 0:
            self._free -= 1
            return
        waiting = _Waiting(turn=asyncio.get_running_loop().create_future(), moved=moved)
        self._line.append(waiting)
        moved(self._most + len(self._line) - 1)  # it may have moved since whoever waits asked for its place
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled():  # the place was given in the same moment
                self._give()
            elif waiting in self._line:
                self._line.remove(waiting)
                self._tell()
            raise

    def _give(self) -> None:
        while self._line:
            waiting = self._line.popleft()
            if not waiting.turn.done():
                waiting.turn.set_result(None)
                self._tell()
                return
        self._free += 1

    def _tell(self) -> None:
        for number, waiting in enumerate(self._line):
            waiting.moved(self._most + number)
