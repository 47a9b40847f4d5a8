"""The page in a real browser: Debian's Chromium, driven from here; skipped if there is none."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from playwright.async_api import Page, async_playwright

from tests.bot.surfaces.web.conftest import Linked, Site

CHROMIUM = shutil.which("chromium") or ""
MILLISECONDS = 60_000

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("chromium")]


@dataclass
class Tab:
    """One page of a browser. `said` is what its console was told: errors, and what the policy has blocked."""

    page: Page
    site: Linked
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # what it has fetched from elsewhere
    weight: int = 0  # bytes that came over the wire

    async def ask(self, question: str) -> None:
        """Type a question, and press Enter."""
        await self.page.fill("#question", question)
        await self.page.keyboard.press("Enter")

    async def answered(self, count: int = 1) -> None:
        """Wait until so many answers are there."""
        await self.page.locator(".rating").nth(count - 1).wait_for(timeout=MILLISECONDS)


@asynccontextmanager
async def open_tab(site: Linked, *, width: int = 1280, dark: bool = False) -> AsyncIterator[Tab]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        context = await browser.new_context(
            viewport={"width": width, "height": 760}, color_scheme="dark" if dark else "light"
        )
        tab = Tab(await context.new_page(), site)
        tab.page.set_default_timeout(MILLISECONDS)
        tab.page.on("console", lambda told: tab.said.append(told.text))
        tab.page.on("pageerror", lambda error: tab.said.append(str(error)))
        wire = await context.new_cdp_session(tab.page)
        await wire.send("Network.enable")
        wire.on("Network.loadingFinished", lambda done: setattr(tab, "weight", tab.weight + done["encodedDataLength"]))
        wire.on("Network.requestWillBeSent", lambda sent: tab.asked.append(sent["request"]["url"]))
        assert site.link is not None
        await tab.page.goto(f"{site.address}/login?t={site.link.token}")
        try:
            yield tab
        finally:
            await browser.close()
    assert tab.said == []
    assert [each for each in tab.asked if not each.startswith(site.address)] == []


async def test_one_asks_follows_up_and_opens_a_citation_with_the_keyboard_on_a_page_of_150_kilobytes_at_most(
    site: Site,
) -> None:
    async with open_tab(site) as tab:
        await tab.ask("where are events sent?")
        await tab.answered()
        await tab.page.locator("#panel tr.cited").first.wait_for()  # the first citation is opened on its own
        assert 10_000 < tab.weight < 150_000
        await tab.ask("and who calls it?")
        await tab.answered(2)
        assert await tab.page.locator(".turn").count() == 2
        assert await tab.page.evaluate("document.activeElement.id") == "question"

        await tab.page.locator(".turn").last.locator(".after a.button").click()
        await tab.page.locator("#course svg .node.taken").first.wait_for()
        await tab.page.locator(".turn").first.locator(".prose a.cite").focus()
        await tab.page.keyboard.press("Enter")
        await tab.page.locator("#panel tr.cited").first.wait_for()

        assert await tab.page.locator("tr.cited .number").first.get_attribute("data-number") == "10"
        await tab.page.locator("#panel .path:focus").wait_for()
        marked = tab.page.locator(".prose a.cite[aria-current]")
        assert await marked.count() == 1  # the answer shows which of its citations is open
        await tab.page.keyboard.press("Escape")
        await tab.page.locator(".turn:first-child .prose a.cite:focus").wait_for()
        assert await tab.page.title() == "where are events sent? · citebot"
        assert "Answered" in (await tab.page.locator("#announcer").text_content() or "")
        await tab.page.get_by_role("button", name="Share").first.focus()
        await tab.page.keyboard.press("Enter")
        await tab.page.locator(".share a:focus").wait_for()
        await tab.page.get_by_role("button", name="Stop sharing").focus()
        await tab.page.keyboard.press("Enter")
        await tab.page.locator(".turn:first-child button[id^=share-]:focus").wait_for()

        await tab.page.reload()
        await tab.page.locator("#panel tr.cited").first.wait_for()
        seen = "[...document.querySelectorAll('.question')].map(e => e.getBoundingClientRect().top)"
        tops = await tab.page.evaluate(seen)
        assert tops[0] < 0 < tops[1] < 200  # the last question, at the top
        await tab.page.keyboard.press("/")
        assert await tab.page.evaluate("document.activeElement.id") == "question"
    assert len({thread for _, thread, _ in site.answerer.asked}) == 1


async def test_an_answer_grows_goes_on_after_a_reload_and_is_stopped(site: Site) -> None:
    assert site.answerer.gate is not None
    site.answerer.gate.clear()
    site.answerer.begins_with = "So far there is this sentence, which is long enough to be sent at once."
    async with open_tab(site) as tab:
        await tab.ask("where are events sent?")
        await tab.page.get_by_text("So far there is this sentence").wait_for()
        assert "/c/" in tab.page.url
        await tab.page.locator("#course .sources").get_by_text("src/session.py:1-9").wait_for()
        assert await tab.page.locator("#course svg").count() == 0  # the trace is for afterwards

        await tab.page.reload()
        await tab.page.get_by_text("So far there is this sentence").wait_for()
        assert await tab.page.locator("#reader p").count() == 0  # what is still being written is not read out
        site.answerer.gate.set()
        await tab.answered()
        assert "Events are sent" in (await tab.page.locator("#reader p").last.text_content() or "")
        await tab.page.get_by_text("Session.send").first.wait_for()
        await tab.page.get_by_role("button", name="Stop").wait_for(state="detached")

        site.answerer.gate.clear()
        await tab.ask("and this one?")
        stop = tab.page.get_by_role("button", name="Stop")
        await stop.wait_for()
        await tab.page.get_by_text("So far there is this sentence").wait_for()
        await stop.focus()
        await tab.page.keyboard.press("Enter")
        await tab.page.locator(".stopped").wait_for()

        assert await stop.count() == 0
        assert await tab.page.evaluate("document.activeElement.className") == "question"


async def test_a_narrow_dark_page_is_read_without_scrolling_sideways(site: Site) -> None:
    site.answerer.text = (
        f"See `{'a_long_name_' * 12}` [1].\n\n```\n{'x = 1; ' * 60}\n```\n\n| a | b |\n|---|---|\n| {'c' * 90} | d |"
    )
    site.answerer.path = f"src/{'deep/' * 30}session.py"
    async with open_tab(site, width=360, dark=True) as tab:
        await tab.ask("where are events sent, " + "and_where_not_" * 20)
        await tab.answered()
        await tab.page.locator(".prose a.cite").click()
        await tab.page.locator("#panel tr.cited").first.wait_for()
        await tab.page.locator("#panel .path:focus").wait_for()
        top = await tab.page.evaluate("document.getElementById('panel').getBoundingClientRect().top")
        assert 0 < top < 200  # it is below the answer, and brought into view
        address = tab.page.url
        for path in (address, f"{site.address}/repositories", f"{site.address}/runs", f"{site.address}/"):
            await tab.page.goto(path)
            wide = await tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1], path
            landmarks = await tab.page.evaluate("['header','main','h1'].map(e => document.querySelectorAll(e).length)")
            assert landmarks == [1, 1, 1]
