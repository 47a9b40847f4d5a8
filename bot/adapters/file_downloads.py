"""Downloads files attached to messages, only from the platform's own addresses and up to a size."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace

import aiohttp
from yarl import URL

from bot.errors import FileUnreadable, PlatformUnreachable
from bot.messages import AttachedFile

SECONDS = 20.0
_CHUNK = 65_536


def get_origin(url: str) -> str:
    """Return an address without its path and default port; empty for none, and for one with a name."""
    try:
        parts = URL(url)
        return "" if parts.raw_user is not None else str(parts.origin())
    except ValueError:
        return ""


async def download_file(
    session: aiohttp.ClientSession,
    file: AttachedFile,
    *,
    origins: Collection[str],
    most: int,
    headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
) -> bytes:
    """Download a file up to a size; the headers go only to the platform's own origins.

    Raises `FileUnreadable` if the file is elsewhere, too large, or refused, and
    `PlatformUnreachable`.
    """
    if get_origin(file.url) not in origins:
        raise FileUnreadable("citebot is not allowed to download from that location.")
    if file.size > most:
        raise FileUnreadable(f"It is larger than {most // 1_000_000} MB.")
    try:
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with session.get(
            file.url, headers=headers, allow_redirects=False, timeout=timeout, proxy=proxy
        ) as answer:
            if answer.status != 200:
                raise FileUnreadable(f"The platform answered with the status {answer.status}.")
            if answer.content_type == "text/html" and file.media_type != "text/html":
                raise FileUnreadable("The platform wants me to log in for it; I need the right to read files.")
            body = bytearray()
            async for chunk in answer.content.iter_chunked(_CHUNK):
                body += chunk
                if len(body) > most:
                    raise FileUnreadable(f"It is larger than {most // 1_000_000} MB.")
            return bytes(body)
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise PlatformUnreachable(f"The platform does not answer ({type(error).__name__}).") from error


class Redirected(aiohttp.ClientError):
    """A platform's API answered with a redirect, which real ones never do."""


def refuse_redirects() -> aiohttp.TraceConfig:
    """Return a trace configuration that ends a redirected call with `Redirected`."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse)
    return trace


async def _refuse(_: aiohttp.ClientSession, __: SimpleNamespace, redirect: aiohttp.TraceRequestRedirectParams) -> None:
    raise Redirected(f"The answer {redirect.response.status} leads elsewhere.")
