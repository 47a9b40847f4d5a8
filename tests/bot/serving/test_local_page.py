"""`citebot web`: one command, and the person at the machine asks about a real repository in the browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bot.serving.local import serve_local_page
from bot.settings import Settings
from bot.tasks import run_in_background
from tests.waiting import LIMIT_SECONDS, expect


@asynccontextmanager
async def open_page(shop: Path) -> AsyncIterator[str]:
    """Serve the page; return the address that is said."""
    told: asyncio.Queue[str] = asyncio.Queue()
    serving = serve_local_page(Settings.load(), shop, told.put_nowait, port=0)
    async with (
        run_in_background(serving),
        expect("the address of the page"),
    ):
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/login\?t=\S+", await told.get())
        yield address


@pytest.mark.usefixtures("home")
async def test_the_person_at_the_machine_asks_about_their_repository(shop: Path) -> None:
    timeout = aiohttp.ClientTimeout(total=LIMIT_SECONDS)
    async with (
        open_page(shop) as address,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=timeout) as browser,
    ):
        base = address.partition("/login")[0]
        start = await (await browser.get(address)).text()
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', start))
        form = {"csrf": csrf, "question": "who calls parse_date?"}
        page = await (await browser.post(f"{base}/ask", data=form, headers={"Origin": base})).text()
        (turn,) = (
            set(re.findall(r"/turns/[\w-]+", page))
            if "data-stream" in page
            else re.findall(r"(/turns/[\w-]+)/rate", page)
        )
        told = await (await browser.get(f"{base}{turn}/events")).text()
        code = await (await browser.get(f"{base}{turn}/code/1")).text()
        course = await (await browser.get(f"{base}{turn}/course")).text()
        repositories = await (await browser.get(f"{base}/repositories")).text()
        runs = await (await browser.get(f"{base}/runs")).text()

    assert "3 calls of" in told
    assert told.rstrip().endswith("data: done")
    assert '<tr class="cited">' in code
    assert '<span class="nf">parse_date</span>' in code
    assert course.count('class="node taken"') >= 5
    assert ">current<" in repositories
    assert "Index now" in repositories
    assert "fast path" in runs
