"""A search engine for the web tool: a SearXNG server, which a team can run itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from agent.errors import WebSearchError
from agent.ports import WebPage

if TYPE_CHECKING:
    from httpx import AsyncClient

_SECONDS = 10.0
_LARGEST = 2_000_000  # bytes of one answer
_LONGEST_TEXT = 500  # characters of what a page says


class _Result(BaseModel):
    url: str
    title: str = ""
    content: str | None = ""


class _Results(BaseModel):
    results: list[_Result]


class SearxngSearch:
    """Asks the JSON interface of one server; nothing is sent but the query, and no redirect is followed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: AsyncClient | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def search(self, query: str, *, limit: int) -> Sequence[WebPage]:
        """Find pages; raises `WebSearchError`."""
        from httpx import HTTPError

        try:
            async with asyncio.timeout(_SECONDS):
                body = await self._fetch_results(query)
        except (HTTPError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise WebSearchError(
                f"The web cannot be searched: {reason}. CITEBOT_WEB_SEARCH_URL names the server."
            ) from error
        try:
            found = _Results.model_validate_json(body).results
        except ValidationError as error:
            message = "The web cannot be searched: the server did not answer in JSON. SearXNG has to allow that format."
            raise WebSearchError(message) from error
        return [
            WebPage(title=one.title, url=one.url, text=(one.content or "")[:_LONGEST_TEXT]) for one in found[:limit]
        ]

    async def _fetch_results(self, query: str) -> bytes:
        if self._client is None:
            from httpx import AsyncClient

            plain = {"Accept-Encoding": "identity"}  # a compressed answer may unpack to any size
            self._client = AsyncClient(timeout=_SECONDS, follow_redirects=False, headers=plain)
        async with self._client.stream("GET", self._url, params={"q": query, "format": "json"}) as response:
            response.raise_for_status()
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise WebSearchError(
                    "The web cannot be searched: the server compresses its answer, which it was not asked to do."
                )
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > _LARGEST:
                    raise WebSearchError("The web cannot be searched: the server's answer is too long.")
        return bytes(body)
