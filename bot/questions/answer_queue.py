"""The order of answers: one at a time per conversation, and a limited number in all; others wait in a queue."""

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
    """A waiting answer; `on_move` is called when the queue has moved."""

    called: asyncio.Future[None]
    on_move: QueueMoved


class AnswerQueue:
    """A number of places for answers, given in the order of asking."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._places = places
        self._line: deque[_Waiting] = deque()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def before(self) -> int:
        """The number of answers before the next one that asks; 0 if it can begin at once."""
        return 0 if self._free > 0 else self._places + len(self._line)

    @property
    def places_in_use(self) -> int:
        """The number of places in use."""
        return self._places - self._free

    def lock_conversation(self, conversation: str) -> asyncio.Lock:
        """Return the lock of a conversation, which exists while somebody holds it or waits for it."""
        return self._locks.setdefault(conversation, asyncio.Lock())

    @asynccontextmanager
    async def hold_place(self, on_move: QueueMoved = lambda _: None) -> AsyncIterator[None]:
        """Hold a place, waiting for it in the queue; `on_move` gets the number of earlier answers on every change."""
        await self._wait_for_slot(on_move)
        try:
            yield
        finally:
            self._release()

    async def _wait_for_slot(self, on_move: QueueMoved) -> None:
        if self._free > 0:
            self._free -= 1
            return
        waiting = _Waiting(called=asyncio.get_running_loop().create_future(), on_move=on_move)
        self._line.append(waiting)
        on_move(self._places + len(self._line) - 1)  # the line may have moved since the caller asked for its length
        try:
            await waiting.called
        except asyncio.CancelledError:
            if waiting.called.done() and not waiting.called.cancelled():  # the place was given in the same moment
                self._release()
            elif waiting in self._line:
                self._line.remove(waiting)
                self._notify()
            raise

    def _release(self) -> None:
        while self._line:
            waiting = self._line.popleft()
            if not waiting.called.done():
                waiting.called.set_result(None)
                self._notify()
                return
        self._free += 1

    def _notify(self) -> None:
        for number, waiting in enumerate(self._line):
            waiting.on_move(self._places + number)
