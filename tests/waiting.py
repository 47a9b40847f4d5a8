"""Waits for events. All share one limit, and a wait that reaches it fails with the name of the event.

The limit ends a hang and measures nothing: no test asserts how long something took.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT_SECONDS = 120.0
_GLANCE_SECONDS = 0.01  # between two looks at something that announces no change


async def wait_for(event: Awaitable[T], what: str) -> T:
    """Await an event and return its result."""
    async with expect(what):
        return await event


@asynccontextmanager
async def expect(what: str) -> AsyncIterator[None]:
    """Limit every await of the block, which together bring about one event."""
    limit = asyncio.timeout(LIMIT_SECONDS)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if limit.expired():
            raise AssertionError(_complain(what)) from error
        raise


async def wait_until(holds: Callable[[], object], what: str) -> None:
    """Look again and again, until a condition holds; for what announces no change, such as files and processes."""
    async with expect(what):
        while not await _look(holds):  # noqa: ASYNC110 - what is looked at tells nobody that it changed
            await asyncio.sleep(_GLANCE_SECONDS)


async def _look(holds: Callable[[], object]) -> object:
    seen = holds()
    return await seen if inspect.isawaitable(seen) else seen


async def wait_for_end(task: asyncio.Future[Any], what: str) -> None:
    """Wait until a task is done, however it ends; anyone who wants its result or error awaits it afterwards."""
    async with expect(what):
        await asyncio.wait({task})


def block_until(holds: Callable[[], object], what: str) -> None:
    """Look again and again from a thread, until a condition holds."""
    until = time.monotonic() + LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < until, _complain(what)
        time.sleep(_GLANCE_SECONDS)


def block_for(event: threading.Event, what: str) -> None:
    """Wait in a thread for an event of another."""
    assert event.wait(LIMIT_SECONDS), _complain(what)


def _complain(what: str) -> str:
    return f"waited {LIMIT_SECONDS:.0f} s in vain: {what}"
