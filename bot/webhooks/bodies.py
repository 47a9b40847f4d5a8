"""Reads the bodies of deliveries: only so large, only so slowly, and only so many at a time."""

from __future__ import annotations

import asyncio

from aiohttp import web

MOST_BYTES = 5_000_000
READ_SECONDS = 10.0
AT_ONCE = 8  # what is being read takes at most so many times `MOST_BYTES` of memory
RETRY_AFTER = "10"  # seconds, after which what is being read now is read


class Bodies:
    """The bodies that are being read."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once

    async def read(self, request: web.Request) -> bytes | web.Response:
        """Return the body, or the answer that says why it was not read to its end.

        Who comes while too many others are read is asked to come again. A host that does not is no loss: repositories
        are polled all the same.
        """
        if (request.content_length or 0) > MOST_BYTES:
            return web.Response(status=413)
        if not self._free:
            return web.Response(status=503, headers={"Retry-After": RETRY_AFTER})
        self._free -= 1
        try:
            return await _whole(request)
        finally:
            self._free += 1


async def _whole(request: web.Request) -> bytes | web.Response:
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for part in request.content.iter_chunked(65_536):
                body += part
                if len(body) > MOST_BYTES:
                    return web.Response(status=413)
    except TimeoutError:
        return web.Response(status=408)
    except (web.RequestPayloadError, ConnectionError):
        return web.Response(status=400)
    return bytes(body)
