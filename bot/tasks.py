"""Runs work until a signal, in the background, or again while a platform is down."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bot.clock import Clock
from bot.errors import BotError, PlatformUnreachable, RateLimited

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState
    from tenacity.stop import stop_base
    from tenacity.wait import wait_base

T = TypeVar("T")

# `kill`, a service manager or a shutdown; a closed terminal window.
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class TerminationSignal(Exception):
    """The process was asked to end, by a signal with that number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Ended by {signal.Signals(number).name}.")
        self.number = number


async def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Run the work; a termination signal cancels it, so that it closes its resources; raises `TerminationSignal`."""
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
    """Run the work; Ctrl-C cancels only that. Return whether it finished."""
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


async def run_abandonable(call: Callable[[], T]) -> T:
    """Make a call in a thread that nobody waits for: a read or write may never return, and must not keep a
    cancelled caller or the process alive.
    """
    called: Future[T] = Future()
    called.set_running_or_notify_cancel()

    def work() -> None:
        try:
            called.set_result(call())
        except Exception as error:  # noqa: BLE001 - the caller's to handle
            called.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(called)


@asynccontextmanager
async def run_in_background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do the work for as long as the context is open; if it fails, the context ends with its error."""
    async with open_task_group() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()


@asynccontextmanager
async def open_task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a group of tasks; if all errors are for people, raise the first."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failed:
        known, other = failed.split(BotError)
        if known is not None and other is None:
            raise _find_first(known) from failed
        raise


def _find_first(group: BaseExceptionGroup[BotError]) -> BotError:
    """Return the first error: the others followed from it, or are the same."""
    inner = group.exceptions[0]
    return _find_first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def retry_while_away(
    clock: Clock,
    *,
    wait: wait_base,
    stop: stop_base | None = None,
    report: Callable[[Exception, float], None],
) -> AsyncRetrying:
    """Return a function that retries a call while a platform is down or delays it, no sooner than that asks for.

    `report` gets the error and the seconds before each wait. The last error is raised unchanged;
    without a `stop` there is none.
    """
    # Of all commands only `serve` tries anything again.
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_never

    def wait_as_asked(state: RetryCallState) -> float:
        error, pause = _get_error(state), wait(state)
        return max(pause, error.retry_after) if isinstance(error, RateLimited) else pause

    return AsyncRetrying(
        sleep=clock.sleep,
        retry=retry_if_exception_type((RateLimited, PlatformUnreachable)),
        wait=wait_as_asked,
        stop=stop or stop_never,
        before_sleep=lambda state: report(_get_error(state), state.upcoming_sleep),
        reraise=True,
    )


def _get_error(state: RetryCallState) -> Exception:
    return cast("Exception", state.outcome.exception() if state.outcome else None)  # only a failed call waits
