"""Server-sent events, written as they come, with heartbeats in between, until the reader leaves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from bot.tasks import run_in_background

BEAT = 15.0  # seconds after which a comment is sent each time: proxies end what is silent
HEARTBEAT = b": keep-alive\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}

T = TypeVar("T")

_LINE_END = re.compile(r"\r\n|\r|\n")


def write_event(data: str, *, name: str = "", id: str = "") -> bytes:  # noqa: A002 - the standard's word
    """Write an event in the standard form; `ValueError` if its name or its id has several lines."""
    if _LINE_END.search(name + id):
        raise ValueError("the name and the id of an event are one line each")
    head = (f"id: {id}\n" if id else "") + (f"event: {name}\n" if name else "")
    return (head + "".join(f"data: {line}\n" for line in _LINE_END.split(data)) + "\n").encode()


class EventStream(StreamingResponse):
    """Answers with events until there are no more, or until the reader leaves.

    The events are read and closed in one task, and then their `source` is closed, so nothing runs
    for an absent reader. Refusals come before the stream; a later error is sent as an event,
    because a stream that just ends looks complete.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        source: AsyncGenerator[Any, None] | None = None,
        beat: float = BEAT,
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=HEADERS)
        self._events = events
        self._source = source or events
        self._beat = beat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; close the source even if the reader left before the first event."""
        async with aclosing(self._source):
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send everything, with heartbeats in between."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._events), run_in_background(self._keep_alive(send)):
            async for event in self._events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _keep_alive(self, send: Send) -> None:
        while True:
            await asyncio.sleep(self._beat)
            await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})


async def wait_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Do some work and return its result; None if the client disconnects first, which cancels the work."""

    async def wait_until_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.create_task(work), asyncio.create_task(wait_until_gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait({working, leaving})
