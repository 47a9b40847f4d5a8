"""Work that goes on beside other work, and takes it along where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from bot.errors import BotError


@asynccontextmanager
async def run_in_background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do the work for as long as the context is open; where it fails, the context ends with its error."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as failed:
        known, other = failed.split(BotError)
        if known is not None and other is None:
            raise _first(known) from failed
        raise


def _first(group: BaseExceptionGroup[BotError]) -> BotError:
    """One is enough: the others came of it, or say the same."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
