"""Files that came with messages are fetched from the platform alone, and only so much of them."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from bot.adapters.file_downloads import download_file
from bot.errors import FileUnreadable
from bot.messages import AttachedFile
from tests.bot.adapters.test_redirects import running

MAX = 100_000
PACKED = zlib.compress(b"0" * 200 * MAX)


async def answer(request: web.Request) -> web.Response:
    match request.path:
        case "/away":
            raise web.HTTPFound("http://127.0.0.1:1/")
        case "/packed":
            return web.Response(body=PACKED, headers={"Content-Encoding": "deflate"}, content_type="text/plain")
        case "/long":
            return web.Response(body=b"0" * (MAX + 1), content_type="text/plain")
        case "/login":
            return web.Response(text="<form>", content_type="text/html")
        case _:
            return web.Response(text=request.headers.get("Authorization", ""))


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with running(answer) as opened:
        yield opened


async def fetch(url: str, address: str, *, size: int = 3) -> str:
    async with aiohttp.ClientSession() as session:
        file = AttachedFile(name="a.log", media_type="text/plain", size=size, url=url)
        sent = {"Authorization": "Bearer token"}
        return (await download_file(session, file, origins={address}, most=MAX, headers=sent)).decode()


async def test_a_file_of_the_platform_is_fetched_with_its_token(address: str) -> None:
    assert await fetch(f"{address}/a.log", address) == "Bearer token"


@pytest.mark.parametrize(
    "form",
    ["{}@evil.example/a", "http://evil.example#@{1}/a", "{}.evil.example/a", "file:///etc/passwd",
     "http://someone:else@{1}/a", "", "https://{1}/a"],
)  # fmt: skip
async def test_nothing_is_fetched_from_elsewhere(address: str, form: str) -> None:
    url = form.format(address, address.removeprefix("http://"))

    with pytest.raises(FileUnreadable, match="not allowed to download from"):
        await fetch(url, address)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("away", "the status 302"),
        ("packed", "larger than"),
        ("long", "larger than"),
        ("login", "wants me to log in"),
    ],
)
async def test_what_is_more_or_something_else_than_the_file_is_left(address: str, path: str, said: str) -> None:
    with pytest.raises(FileUnreadable, match=said):
        await fetch(f"{address}/{path}", address)
    with pytest.raises(FileUnreadable, match="larger than"):
        await fetch(f"{address}/a.log", address, size=MAX + 1)
