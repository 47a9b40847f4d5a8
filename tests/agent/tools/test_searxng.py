"""The web search over HTTP: what is sent, what comes back, and servers that misbehave."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from agent.errors import WebSearchError
from agent.ports import WebPage
from agent.tools.web_search import SearxngSearch


@contextmanager
def served(body: bytes, status: int = 200, packing: str = "") -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything alike, and remembers what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if packing:
                self.send_header("Content-Encoding", packing)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/search", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
