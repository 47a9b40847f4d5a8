"""Searches the public web by a SearXNG server or DuckDuckGo, after a person's approval."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from agent.errors import WebSearchError
from agent.lookups.tool import OUTSIDE, Tool, ToolEvidence, ToolReport
from agent.ports import Deps, WebPage
from indexer.installation import describe_extra

if TYPE_CHECKING:
    from httpx import AsyncClient


MAX_PAGES = 5
NOTHING_LEFT = (
    "A web search may only use words that the person wrote in the question, and there are none in that query."
)
_WORD = re.compile(r"[\w.+#-]+")


class WebArguments(BaseModel):
    """The words of a web search."""

    query: str = Field(min_length=1, description="Words of the person's question; all others are taken out.")


class WebSearchTool(Tool[WebArguments]):
    """Searches the public web."""

    name = "web_search"
    description = "Search the public web, for what the repository cannot tell. Only words of the question may be used."
    arguments = WebArguments
    label = "Searching the web for"
    argument_shown = "query"
    cost = OUTSIDE
    needs_approval = True
    source = "web"

    def is_available(self, deps: Deps) -> bool:
        """Whether a search engine is configured."""
        return deps.web is not None

    def describe_call(self, args: Mapping[str, Any], deps: Deps) -> str:
        """Show the text to be sent; empty for an empty search."""
        query = make_web_query(str(args.get("query", "")), deps.redact(deps.asked))
        return f"Search the web for: {query}" if query else ""

    async def run(self, args: WebArguments, deps: Deps) -> ToolEvidence:
        """Search with only the words of the query that the person wrote."""
        report = ToolReport(deps.redact)
        query = make_web_query(args.query, deps.redact(deps.asked))
        if not query or deps.web is None:
            report.say(NOTHING_LEFT)
            return report.evidence()
        pages = await deps.web.search(query, limit=MAX_PAGES)
        report.say(f"Searched the web for: {query}")
        for page in pages[:MAX_PAGES]:
            report.say(f"{page.title} <{page.url}>: {page.text}")
        if not pages:
            report.say("No page was found.")
        return report.evidence()


def make_web_query(query: str, asked: str) -> str:
    """Keep the person's words in a query, so that nothing read in the repository can leave with it."""
    allowed = {word.lower() for word in _WORD.findall(asked)}
    return " ".join(word for word in _WORD.findall(query) if word.lower() in allowed)[:200]


_TIMEOUT_SECONDS = 10.0
_LARGEST = 2_000_000  # bytes of one answer
_MAX_TEXT = 500  # characters of what a page says
_DUCKDUCKGO = "duckduckgo"


class _Result(BaseModel):
    url: str
    title: str = ""
    content: str | None = ""


class _Results(BaseModel):
    results: list[_Result]


class SearxngSearch:
    """Asks the JSON interface of one server; sends only the query, and follows no redirect."""

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
            async with asyncio.timeout(_TIMEOUT_SECONDS):
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
        return [WebPage(title=one.title, url=one.url, text=(one.content or "")[:_MAX_TEXT]) for one in found[:limit]]

    async def _fetch_results(self, query: str) -> bytes:
        if self._client is None:
            from httpx import AsyncClient

            plain = {"Accept-Encoding": "identity"}  # a compressed answer may unpack to any size
            self._client = AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False, headers=plain)
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


class DuckDuckGoSearch:
    """Asks only DuckDuckGo, through ddgs of the extra web-search."""

    async def aclose(self) -> None:
        """Do nothing: no connection is kept."""

    async def search(self, query: str, *, limit: int) -> Sequence[WebPage]:
        """Find pages; raises `WebSearchError`."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return await asyncio.to_thread(_ask_duckduckgo, query, limit)
        except TimeoutError as error:
            raise WebSearchError("The web cannot be searched: DuckDuckGo did not answer in time.") from error


def _ask_duckduckgo(query: str, limit: int) -> Sequence[WebPage]:
    try:
        from ddgs import DDGS
        from ddgs.engines import ENGINES
        from ddgs.exceptions import DDGSException
    except ImportError as error:
        raise WebSearchError(f"The web cannot be searched: ddgs is missing. {describe_extra('web-search')}") from error
    if _DUCKDUCKGO not in ENGINES["text"]:  # ddgs would send the query to every other engine that it knows
        raise WebSearchError("The web cannot be searched: this version of ddgs does not ask DuckDuckGo.")
    try:
        found = DDGS(timeout=int(_TIMEOUT_SECONDS)).text(query, max_results=limit, backend=_DUCKDUCKGO)
    except DDGSException as error:  # also if there is nothing: ddgs does not tell that from a refusal
        raise WebSearchError(
            f"DuckDuckGo has found nothing, or does not answer for a while after many searches: {error}"
        ) from error
    return [
        WebPage(title=one["title"], url=one["href"], text=one["body"][:_MAX_TEXT])
        for one in found
        if one["href"].startswith(("http://", "https://"))
    ]
