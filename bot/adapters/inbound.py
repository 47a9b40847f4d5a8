"""Delivers events of all platforms to the conversations, with retries, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, cast

from bot.clock import Clock
from bot.errors import ChatError, InboxError, PlatformUnreachable, RateLimited

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # seconds between tries; Discord delivers nothing again

log = logging.getLogger(__name__)


async def deliver_with_retry(deliver: Callable[[], Awaitable[object]], clock: Clock) -> bool:
    """Deliver an event to the conversations, with retries after temporary failures; False if it was lost."""
    for pause in (*PAUSES, 0.0):
        try:
            await deliver()
        except (InboxError, RateLimited, PlatformUnreachable) as error:
            log.warning("an event could not be stored yet: %s", error)
            if pause:
                await clock.sleep(pause)
        except ChatError as error:
            log.warning("an event could not be handled: %s", error)
            return False
        else:
            return True
    log.error("an event was not stored, and is lost")
    return False


class EventsInFlight:
    """The events being handled, none of which may outlive the conversations."""

    def __init__(self) -> None:
        self._tasks: dict[object, asyncio.Task[Any]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def track(self) -> Iterator[None]:
        """Count the enclosed work as an event; may be nested."""
        key = object()
        self._tasks[key] = cast("asyncio.Task[Any]", asyncio.current_task())
        self._idle.clear()
        try:
            yield
        finally:
            del self._tasks[key]
            if not self._tasks:
                self._idle.set()

    async def drain(self, seconds: float) -> Collection[asyncio.Task[Any]]:
        """Wait until no event is left, up to a limit; return the tasks that are still handling one."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            log.info("%d events are still being handled", len(self._tasks))
        return set(self._tasks.values())
