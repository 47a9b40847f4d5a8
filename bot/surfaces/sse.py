"""Server-sent events: what happens is written as it comes, with a heartbeat in between, to somebody who may be gone."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web

BEAT = 15.0  # seconds without anything to say, after which a comment is sent: proxies end what is silent
PATIENCE = 20.0  # seconds for which one piece may wait for a reader
HEARTBEAT = b": keep-alive\n\n"
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_GLANCE = 0.5  # seconds after which a reader that has gone is noticed, while there is nothing to write
_AHEAD = 64  # events that are kept for a reader that is slower than they come
_LINE_END = re.compile(r"\r\n|\r|\n")

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSentEvent:
    """One event of a stream. A browser hands `id` back when it connects again."""

    data: str
    event: str = ""
    id: str = ""

    def encode(self) -> bytes:
        """Write it as the standard has it; `ValueError` where its name or its id is more than one line."""
        if _LINE_END.search(self.event + self.id):
            raise ValueError("the name and the id of an event are one line each")
        head = (f"id: {self.id}\n" if self.id else "") + (f"event: {self.event}\n" if self.event else "")
        return (head + "".join(f"data: {line}\n" for line in _LINE_END.split(self.data)) + "\n").encode()


async def stream_events(
    request: web.Request,
    events: AsyncGenerator[ServerSentEvent, None],
    *,
    headers: Mapping[str, str] | None = None,
    beat: float = BEAT,
    patience: float = PATIENCE,
) -> web.StreamResponse:
    """Answer with events until there are no more, or until the reader has gone or has stopped reading.

    The events are closed in any case, so that nothing runs for somebody who is not there. Whatever may refuse the
    request has to come before; an error on the way is theirs to tell, as an event: a stream that just ends looks whole.
    """
    response = web.StreamResponse(headers={**HEADERS, **(headers or {})})
    response.force_close()
    async with aclosing(watch_reader(request, events, beat=beat)) as pieces:
        try:
            await response.prepare(request)
            async for event in pieces:
                async with asyncio.timeout(patience):
                    await response.write(HEARTBEAT if event is None else event.encode())
            await response.write_eof()
        except TimeoutError:
            log.info("a stream was ended: its reader took nothing for %g s", patience)
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            log.debug("the reader of a stream has gone")
    return response


async def watch_reader(
    request: web.Request, events: AsyncGenerator[T, None], *, beat: float = BEAT
) -> AsyncGenerator[T | None, None]:
    """Pass events on, and None after each `beat` without any; end as soon as the one who asked is gone.

    The events are taken, and at last closed, in one task: what they do may depend on that.
    """
    queue: asyncio.Queue[T] = asyncio.Queue(_AHEAD)
    loop = asyncio.get_running_loop()
    source = asyncio.create_task(_fill(queue, events))
    heard = loop.time()
    try:
        while not (source.done() and queue.empty()):
            if is_gone(request):
                return
            event = await _take(queue, source, min(beat, _GLANCE))
            if event is not None or loop.time() - heard >= beat:
                heard = loop.time()
                yield event
        source.result()
    finally:
        source.cancel()
        await asyncio.wait({source})


def is_gone(request: web.Request) -> bool:
    """Whether nobody is left to read the answer to a request, as far as the system has noticed."""
    return request.transport is None or request.transport.is_closing()


async def _fill(queue: asyncio.Queue[T], events: AsyncGenerator[T, None]) -> None:
    async with aclosing(events):
        async for event in events:
            await queue.put(event)


async def _take(queue: asyncio.Queue[T], source: asyncio.Task[None], seconds: float) -> T | None:
    """Return the next event; None where none came for a moment, or where there will be no more."""
    getting = asyncio.ensure_future(queue.get())
    try:
        await asyncio.wait({getting, source}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return getting.result() if getting.done() else None
    finally:
        getting.cancel()
