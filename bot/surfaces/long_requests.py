"""Keeps connections open for as long as an answer takes, and gives surfaces their core once it is open."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from aiohttp import web

from bot.surfaces.team_surfaces import SurfaceCore

MOST_EACH = 8  # of one person
SECONDS = 4_000.0  # of one request; an answer may take an hour, and wait for others before
RETRY_AFTER = "10"  # seconds
SOON = "5"


class KeepOpen(Protocol):
    """Keeps a connection open beyond the time that a request usually has."""

    def __call__(self, transport: asyncio.BaseTransport | None, seconds: float) -> bool:
        """Keep it for so long; False where that is not possible."""


class LongRequests:
    """The requests that wait for an answer or follow one."""

    def __init__(self, keep_open: KeepOpen, *, most_each: int = MOST_EACH) -> None:
        self._keep_open = keep_open
        self._most_each = most_each
        self._held: Counter[str] = Counter()

    @contextmanager
    def hold(self, request: web.Request, person: str) -> Iterator[None]:
        """Let a request of somebody who is known take its time.

        Raises `web.HTTPTooManyRequests` where they have too many, `web.HTTPServiceUnavailable` where all have.
        """
        if self._held[person] >= self._most_each:
            raise web.HTTPTooManyRequests(
                text=f"You already have {self._most_each} requests waiting for an answer. Wait until one ends.",
                headers={"Retry-After": RETRY_AFTER},
            )
        if not self._keep_open(request.transport, SECONDS):
            raise web.HTTPServiceUnavailable(
                text="Too many requests are waiting for an answer. Try again in a little while.",
                headers={"Retry-After": RETRY_AFTER},
            )
        self._held[person] += 1
        try:
            yield
        finally:
            self._held[person] -= 1
            if not self._held[person]:
                del self._held[person]


class LateCore:
    """The core, once it is there: an application takes no new paths while it is served, so those come first."""

    def __init__(self) -> None:
        self._core: SurfaceCore | None = None

    def open(self, core: SurfaceCore) -> None:
        """Serve requests from now on."""
        self._core = core

    def close(self) -> None:
        """Serve nothing more; callers are asked to try again."""
        self._core = None

    def get(self) -> SurfaceCore:
        """Return the core; raises `web.HTTPServiceUnavailable` while there is none."""
        if self._core is None:
            raise web.HTTPServiceUnavailable(
                text="citebot is starting or shutting down. Try again in a moment.",
                headers={"Retry-After": SOON},
            )
        return self._core
