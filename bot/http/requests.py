"""Reads requests within limits: only so large, so slowly and so much at a time; and only those for this host."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

RETRY_AFTER = "10"  # seconds
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(?P<name>[a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")


def read_media_type(headers: Mapping[str, str]) -> str:
    """Return the type that a body is said to have, without its parameters."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


class BodyReader:
    """The bodies being read: each at most `largest` bytes within `seconds`, and `total` bytes together.

    Above that total, the oldest are dropped: a host's body arrives within milliseconds, so the longest upload is the
    most likely attack.
    """

    def __init__(self, *, largest: int, seconds: float, total: int) -> None:
        self._largest = largest
        self._seconds = seconds
        self._total = max(total, largest)
        self._held = 0
        self._deadlines: dict[asyncio.Timeout, int] = {}  # of those that are read, with the bytes that are here

    async def read(self, request: Request) -> bytes:
        """Return the body; raises an empty `HTTPException` if it is not read to its end."""
        if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise HTTPException(415, "")  # no host packs its deliveries, and a small one may unpack to anything
        if int(request.headers.get("Content-Length", "0")) > self._largest:
            raise HTTPException(413, "")
        deadline = asyncio.timeout(self._seconds)
        try:
            async with deadline:
                return await self._read_whole(request, deadline)
        except TimeoutError:
            if deadline not in self._deadlines:  # it was given up
                raise HTTPException(503, "", {"Retry-After": RETRY_AFTER}) from None
            raise HTTPException(408, "") from None
        except ClientDisconnect:
            raise HTTPException(400, "") from None
        finally:
            self._held -= self._deadlines.pop(deadline, 0)

    async def _read_whole(self, request: Request, deadline: asyncio.Timeout) -> bytes:
        body = bytearray()
        self._deadlines[deadline] = 0
        async for part in request.stream():
            body += part
            if len(body) > self._largest:
                raise HTTPException(413, "")
            if deadline in self._deadlines:
                self._deadlines[deadline] += len(part)
                self._held += len(part)
            while self._held > self._total:  # the ones that have been read for longest are given up
                oldest = next(iter(self._deadlines))
                self._held -= self._deadlines.pop(oldest)
                if not oldest.expired():
                    oldest.reschedule(asyncio.get_running_loop().time())
        return bytes(body)


def is_own_host(host: str, hosts: Collection[str]) -> bool:
    """Whether a header `Host` names this machine or one of the hosts; those without a port may be asked for at any."""
    found = _HOST.fullmatch(host.lower())
    known = {each.lower() for each in hosts}
    return found is not None and (found["name"] in LOOPBACK or found[0] in known or found["name"] in known)
