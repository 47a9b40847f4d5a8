"""Keeps sessions from following redirects: what a platform is told, and the token with it, goes nowhere else."""

from __future__ import annotations

from types import SimpleNamespace

import aiohttp


class Redirected(aiohttp.ClientError):
    """A platform's API answered with a redirect, which it never does by itself."""


def refuse_redirects() -> aiohttp.TraceConfig:
    """Return what a session is made with so that a redirect ends a call with `Redirected`."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse)
    return trace


async def _refuse(_: aiohttp.ClientSession, __: SimpleNamespace, found: aiohttp.TraceRequestRedirectParams) -> None:
    raise Redirected(f"The answer {found.response.status} leads elsewhere.")
