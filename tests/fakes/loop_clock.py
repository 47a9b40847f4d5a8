"""The clock of an event loop in the hands of a test: a limit runs out when the test says so, on any machine."""

from __future__ import annotations

import asyncio


class LoopClock:
    """Turns on the time of the running event loop; made within it. The limits of `tests/waiting.py` pass with it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ahead = 0.0
        real = self._loop.time
        self._loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    def advance(self, seconds: float) -> None:
        """Let so many seconds have passed, once those who can run now wait again; from any thread."""
        self._loop.call_soon_threadsafe(self.jump, seconds)

    def jump(self, seconds: float) -> None:
        """Let so many seconds have passed at once; from what runs in the loop."""
        self._ahead += seconds
