"""What the operating system tells a command: that it should end, or that Ctrl-C was pressed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# `kill`, a service manager or a shutdown; a closed terminal window.
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class TerminationSignal(Exception):
    """The process was asked to end, by the signal of that number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Ended by {signal.Signals(number).name}.")
        self.number = number


async def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Run the work; a signal to end cancels it, so that it closes what it opened, and is raised as `TerminationSignal`."""
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for each in _ENDINGS:
        if signal.getsignal(each) is not signal.SIG_IGN:  # as under nohup
            loop.add_signal_handler(each, end, each)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise TerminationSignal(received[0]) from None
        raise
    finally:
        for each in _ENDINGS:
            loop.remove_signal_handler(each)


async def run_until_interrupt(work: Coroutine[None, None, None]) -> bool:
    """Run the work; Ctrl-C cancels it and nothing else. Tell whether it came to its end."""
    task = asyncio.ensure_future(work)
    with call_on_interrupt(task.cancel):
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            await asyncio.wait({task})
    if task.cancelled():
        return False
    task.result()
    return True


@contextmanager
def call_on_interrupt(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on Ctrl-C for as long as the context is open."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
