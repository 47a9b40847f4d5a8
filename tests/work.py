"""Counts the work of Python instead of the time it takes: the same on every machine, however busy."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

_LENGTHS = (500, 2_000, 8_000)
_GROWTH = 6.0  # for four times the text: linear work grows 4 times, quadratic work 16 times
_FIXED = 2_000  # lines that a call may run whatever its text


def count_work(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs in its thread; work inside C counts as nothing."""
    counted = [0]
    gc.disable()  # finalizers of what other tests left behind are not the call's
    try:
        with _count_lines(counted):
            call()
    finally:
        gc.enable()
    return counted[0]


def find_steepness(read: Callable[[int], object]) -> str:
    """Name the work at three sizes, each four times the one before, where it grows faster than they do; or nothing.

    What begins at a certain size grows fast once, so that only two steps on end are steep.
    """
    read(_LENGTHS[0])  # what is made at its first use is not counted
    works = [count_work(lambda: read(_LENGTHS[0]))]
    for length in _LENGTHS[1:]:
        works.append(count_work(lambda length=length: read(length)))  # type: ignore[misc]
        if works[-1] <= _GROWTH * works[-2] + _FIXED:
            return ""
    return " -> ".join(f"{work:,}" for work in works)


def find_steep_piece(read: Callable[[str], object], pieces: Sequence[str]) -> str:
    """Name a piece of which more takes far more work, or return nothing."""
    for piece in pieces:
        if steep := find_steepness(lambda length, piece=piece: read((piece * length)[:length])):  # type: ignore[misc]
            return f"{piece!r}: {steep} lines"
    return ""


if sys.version_info >= (3, 12):

    @contextmanager
    def _count_lines(counted: list[int]) -> Iterator[None]:
        monitoring, thread = sys.monitoring, threading.get_ident()
        tool = next(number for number in range(6) if monitoring.get_tool(number) is None)

        def note(*_: object) -> None:
            counted[0] += threading.get_ident() == thread

        monitoring.use_tool_id(tool, "work")
        events = monitoring.events.LINE, monitoring.events.JUMP
        for event in events:
            monitoring.register_callback(tool, event, note)
        monitoring.set_events(tool, events[0] | events[1])
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

else:

    @contextmanager
    def _count_lines(counted: list[int]) -> Iterator[None]:
        def note(_: FrameType, event: str, __: Any) -> Any:
            if event == "line":
                counted[0] += 1
            return note

        before = sys.gettrace()
        sys.settrace(note)
        try:
            yield
        finally:
            sys.settrace(before)
