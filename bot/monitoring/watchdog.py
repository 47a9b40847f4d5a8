"""Detects calls that block the event loop: while one runs, no message and no probe is answered.

Only the processor time of the loop's own thread counts, so stopped processes, sleeping or busy machines, and garbage
collection do not.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import selectors
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

LOOK_SECONDS = 0.07  # between two looks at the loop, which so take less than a thousandth of a processor
LOG_SECONDS = 10.0  # for that long nothing more is logged after a stall
LONG_SECONDS = 1.0  # so long a stall is logged before its end, which may never come
MAX_FRAMES = 16

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the loop after waiting; `began` is in processor time of its thread."""

    number: int
    began: float


@dataclass(frozen=True, slots=True)
class Stall:
    """A round over the limit; `stack` is its place, empty if none was recorded."""

    number: int
    seconds: float
    stack: str = ""


class Meter(selectors.DefaultSelector):
    """Waits for the loop, and measures each round between two waits."""

    def __init__(self) -> None:
        super().__init__()
        self.round: Round | None = None  # none while the loop waits
        self.limit = float("inf")
        self.stalls: deque[Stall] = deque(maxlen=1_000)
        self.collected = 0.0  # seconds of the round in which garbage was collected
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for outside events; handling them until the next call is a round."""
        last, self.round = self.round, None
        if last is not None:
            held = time.thread_time() - last.began - self.collected
            if held > self.limit:
                self.stalls.append(Stall(last.number, held))
        found = super().select(timeout)
        self._rounds += 1
        self.collected = 0.0
        self.round = Round(self._rounds, time.thread_time())
        return found


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that can be watched."""

    def __init__(self) -> None:
        self.meter = Meter()
        super().__init__(self.meter)


class Watchdog:
    """A thread that checks whether the loop is blocked, and logs by what; `measure` gets the seconds of each stall."""

    def __init__(self, meter: Meter, *, limit: float, measure: Callable[[float], None]) -> None:
        self._meter = meter
        self._limit = limit
        self._measure = measure
        self._thread = threading.get_ident()
        self._clock = _find_clock(self._thread)
        self._glimpse = Stall(0, 0.0)  # the last round that was seen to take long
        self._logged = 0  # the round that was logged before it was over
        self._quiet_until = 0.0
        self._left_out = 0
        self._collecting = 0.0
        self._ended = False

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the loop of this thread for as long as the context is open."""
        thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._meter.limit, self._meter.round = self._limit, None  # time up to here is not measured
        gc.callbacks.append(self._note_collection)
        thread.start()
        try:
            yield
        finally:
            self._meter.limit = float("inf")
            gc.callbacks.remove(self._note_collection)
            self._ended = True
            thread.join()

    def _run(self) -> None:
        while not self._ended:
            time.sleep(LOOK_SECONDS)  # half as dear as waiting for an event
            self._check_loop()
        self._report_finished_stalls()

    def _check_loop(self) -> None:
        """Record where the loop is, if it has been busy for a while."""
        under_way = self._meter.round
        if under_way is not None and under_way.number != self._logged:
            held = self._clock() - under_way.began - self._meter.collected
            frame = sys._current_frames().get(self._thread) if held > self._limit / 2 else None  # noqa: SLF001 - documented
            is_over = self._meter.round is not under_way or (frame and frame.f_code is Meter.select.__code__)
            if frame is not None and not is_over:
                self._glimpse = Stall(under_way.number, held, _describe_stack(frame))
                if held > max(LONG_SECONDS, self._limit):  # it may never be over
                    self._logged = under_way.number
                    self._log(self._glimpse, "has been held for %.1f s so far")
        self._report_finished_stalls()

    def _report_finished_stalls(self) -> None:
        """Measure and log the finished stalls."""
        while self._meter.stalls:
            stall = self._meter.stalls.popleft()
            self._measure(stall.seconds)
            if stall.number == self._logged:
                log.warning("the event loop is free again after %.1f s", stall.seconds)
            else:
                stack = self._glimpse.stack if self._glimpse.number == stall.number else ""
                self._log(Stall(stall.number, stall.seconds, stack), "was held for %.3f s")

    def _log(self, stall: Stall, how: str) -> None:
        now = time.monotonic()
        if now < self._quiet_until:
            self._left_out += 1
            return
        more = f" ({self._left_out} more times since the last one)" if self._left_out else ""
        self._quiet_until, self._left_out = now + LOG_SECONDS, 0
        where = f"; it stood at\n{stall.stack}" if stall.stack else "; it was over before anybody saw where"
        log.warning("the event loop %s%s%s", how % stall.seconds, more, where)

    def _note_collection(self, phase: str, _: dict[str, Any]) -> None:
        """Note garbage collection, which the interrupted call does not cause."""
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._meter.collected += time.thread_time() - self._collecting


@contextmanager
def watch_loop(*, limit: float, measure: Callable[[float], None]) -> Iterator[None]:
    """Watch the running loop while the context is open, if possible."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, WatchedLoop):
        yield
        return
    with Watchdog(loop.meter, limit=limit, measure=measure).watch():
        yield


def _find_clock(thread: int) -> Callable[[], float]:
    """Return a clock of the processor time of a thread; of the whole process if the system has none for threads."""
    if sys.platform == "darwin" or not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def _describe_stack(frame: FrameType | None) -> str:
    """Name the innermost calls, outermost first: files, lines and functions, but no values."""
    lines: list[str] = []
    while frame is not None and len(lines) < MAX_FRAMES and frame.f_code is not asyncio.Handle._run.__code__:  # noqa: SLF001
        lines.append(
            f'  File "{frame.f_code.co_filename}", line {frame.f_lineno or "?"}, in {frame.f_code.co_qualname}'
        )
        frame = frame.f_back
    return "\n".join(reversed(lines))
