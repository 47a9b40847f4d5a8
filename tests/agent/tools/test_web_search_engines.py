"""Web searches over HTTP: what is sent, what comes back, and servers that misbehave."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from ddgs.engines import ENGINES
from ddgs.engines.duckduckgo import Duckduckgo

from agent.errors import WebSearchError
from agent.ports import WebPage
from agent.tools.web_search import DuckDuckGoSearch, SearxngSearch
from tests.fakes.loopback.web_service import Reply, Request, serving


@contextmanager
def served(body: bytes, status: int = 200, packing: str = "") -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything alike, and remembers what it was asked."""
    asked: list[str] = []
    headers = {"Content-Encoding": packing} if packing else {}
    if status == 302:
        headers["Location"] = "http://127.0.0.1:9/elsewhere"

    def answer(request: Request) -> Reply:
        asked.append(f"{request.path}?{request.body.decode()}" if request.body else request.path)
        return Reply(body=body, status=status, headers=headers)

    with serving(answer) as url:
        yield f"{url}/search", asked


async def found(url: str, limit: int = 2) -> list[WebPage]:
    engine = SearxngSearch(url)
    try:
        return list(await engine.search("event retries & back-off", limit=limit))
    finally:
        await engine.aclose()


@pytest.fixture
async def engine() -> AsyncIterator[SearxngSearch]:
    engine = SearxngSearch("http://127.0.0.1:9/search")
    yield engine
    await engine.aclose()


async def test_pages_are_found_and_nothing_but_the_query_is_sent() -> None:
    results = [{"url": f"https://example.com/{n}", "title": f"Page {n}", "content": "x" * 900} for n in range(5)]
    with served(json.dumps({"results": results}).encode()) as (url, asked):
        pages = await found(url)

    assert [(page.title, page.url, len(page.text)) for page in pages] == [
        ("Page 0", "https://example.com/0", 500),
        ("Page 1", "https://example.com/1", 500),
    ]
    assert parse_qs(urlsplit(asked[0]).query) == {"q": ["event retries & back-off"], "format": ["json"]}


async def test_a_page_may_say_nothing() -> None:
    with served(b'{"results": [{"url": "https://example.com", "content": null}]}') as (url, _):
        assert await found(url) == [WebPage(title="", url="https://example.com", text="")]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"<html>", 200, "did not answer in JSON"),
        (b'{"results": 3}', 200, "did not answer in JSON"),
        (b"", 403, "403"),
        (b"", 302, "302"),
        (b" " * 2_100_000, 200, "too long"),
    ],
)
async def test_a_server_that_misbehaves_is_a_sentence(body: bytes, status: int, sentence: str) -> None:
    with served(body, status) as (url, asked), pytest.raises(WebSearchError, match=sentence):
        await found(url)
    assert len(asked) == 1


@pytest.mark.parametrize("packing", ["gzip", "deflate", "br", "zstd"])
async def test_an_answer_that_is_packed_is_not_unpacked(packing: str) -> None:
    bomb = gzip.compress(b" " * 20_000_000)
    with served(bomb, packing=packing) as (url, _), pytest.raises(WebSearchError, match="compresses its answer"):
        await found(url)


async def test_a_server_that_is_not_there_is_a_sentence(engine: SearxngSearch) -> None:
    with pytest.raises(WebSearchError, match="CITEBOT_WEB_SEARCH_URL names the server"):
        await engine.search("retries", limit=3)


DUCK = """
<div class="result__body body"><h2><a href="https://duckduckgo.com/y.js?ad">Bought</a></h2><a href="https://duckduckgo.com/y.js?ad">x</a></div>
<div class="result__body body"><h2>Retry <b>policies</b></h2><a href="https://example.com/1">{long}</a></div>
<div class="result__body body"><h2>A script</h2><a href="javascript:alert(1)">event retries</a></div>
"""


async def test_duckduckgo_is_asked_for_the_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(DUCK.format(long="retries " * 100).encode()) as (url, asked):
        monkeypatch.setattr(Duckduckgo, "search_url", url)
        (page,) = await DuckDuckGoSearch().search("event retries", limit=5)

    assert (page.title, page.url, len(page.text)) == ("Retry policies", "https://example.com/1", 500)
    assert [parse_qs(urlsplit(path).query)["q"] for path in asked] == [["event retries"]]


@pytest.mark.parametrize(("body", "status"), [(b"<html></html>", 200), (b"", 202)])
async def test_nothing_found_is_not_told_from_a_refusal(
    monkeypatch: pytest.MonkeyPatch, body: bytes, status: int
) -> None:
    with served(body, status) as (url, _):
        monkeypatch.setattr(Duckduckgo, "search_url", url)
        with pytest.raises(WebSearchError, match="found nothing, or does not answer"):
            await DuckDuckGoSearch().search("event retries", limit=5)


async def test_no_other_engine_takes_the_place_of_duckduckgo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "text", {})
    with pytest.raises(WebSearchError, match="does not ask DuckDuckGo"):
        await DuckDuckGoSearch().search("retries", limit=3)


async def test_what_duckduckgo_lacks_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Duckduckgo, "search_url", "http://127.0.0.1:9/html/")
    with pytest.raises(WebSearchError, match="does not answer"):
        await DuckDuckGoSearch().search("retries", limit=3)
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(WebSearchError, match=r"ddgs is missing\. Install it: .*web-search"):
        await DuckDuckGoSearch().search("retries", limit=3)
