"""Keeps sessions from following redirects: messages and tokens go to the platform and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace

import aiohttp


class Redirected(aiohttp.ClientError):
    """A platform's API answered with a redirect, which it never does on its own."""


def refuse_redirects() -> aiohttp.TraceConfig:
    """Return a trace configuration with which a redirect ends a call with `Redirected`."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse)
    return trace


async def _refuse(_: aiohttp.ClientSession, __: SimpleNamespace, redirect: aiohttp.TraceRequestRedirectParams) -> None:
    raise Redirected(f"The answer {redirect.response.status} leads elsewhere.")
