"""The demo workspace in a real browser, with the keyboard alone, as axe-core judges it; skipped without Chromium."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page

from bot.adapters.local.workspace import BOT, Workspace
from bot.messages import Button, MessageContent
from tests.bot.adapters.local.conftest import ServedWorkspace
from tests.bot.surfaces.web.conftest import CitingAnswerer
from tests.bot.surfaces.web.test_accessibility import ANSWER, Audit
from tests.bot.surfaces.web.test_browser import open_tab

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("chromium")]


Look = Callable[[str], Awaitable[None]]


async def ask_in_a_thread(page: Page, citing: CitingAnswerer, look: Look) -> None:
    """Mention citebot, follow the answer in its thread, rate it, and open and close the code that it cites."""
    assert citing.gate is not None
    await look("an empty channel")
    await page.keyboard.press("/")
    await page.keyboard.type("@ci")
    await page.locator("#names-flow li[aria-selected=true]").wait_for()
    await look("suggestions")
    citing.gate.clear()
    citing.begins_with = "So far there is this sentence, which is long enough to be sent at once."
    await page.keyboard.press("Enter")
    await page.keyboard.type("where are events sent?")
    await page.keyboard.press("Enter")
    replies = page.locator(".replies", has_text="1 reply")
    await replies.wait_for()
    await replies.focus()
    await page.keyboard.press("Enter")
    await page.locator("#thread .status").get_by_text("Searching").wait_for()
    assert page.url.endswith("/c/general/1")
    await look("running in a thread")
    citing.gate.set()
    await page.locator("#thread .message[data-finished]").wait_for()
    await page.get_by_role("button", name="Helpful", exact=True).focus()
    await page.keyboard.press("Enter")
    await page.locator("#notice").get_by_text("Thank you").wait_for()
    await look("answered and rated")
    await page.locator("#thread a.cite").focus()
    await page.keyboard.press("Enter")
    await page.locator("#panel .path:focus").wait_for()
    assert await page.locator("#panel tr.cited").count() == 15
    await look("the cited code")
    await page.locator("#panel .shut").focus()
    await page.keyboard.press("Enter")
    await page.locator("#thread a.cite:focus").wait_for()
    await page.locator("#thread .shut").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/c/general")


async def decide_and_react(page: Page, workspace: Workspace, look: Look) -> None:
    """Meet a proposal, and an answer that is outdated; react to it."""
    buttons = (Button(action="approve", label="Approve", value="r"), Button(action="stop", label="Abort", value="r"))
    await workspace.add("general", BOT, content=MessageContent(text="A goal run on `demo`:", buttons=buttons))
    again = Button(action="again", label="Answer again", value="r")
    footer = "Outdated since `4f2c9d1`: 1 of 2 cited places changed"
    await workspace.add("general", BOT, content=MessageContent(text="Old.", footer=footer, buttons=(again,)))
    await page.get_by_role("button", name="Answer again").wait_for()
    eyes = page.get_by_role("button", name="Watch, 0 reactions").last
    await eyes.focus()
    await page.keyboard.press("Enter")
    await page.locator(".react[aria-pressed=true]:focus", has_text="1").wait_for()
    await look("a proposal, and an outdated answer with a reaction")


async def use_the_rest(page: Page, look: Look) -> None:
    """Use a command, and change and delete a message; become another person."""
    await page.keyboard.press("/")
    await page.keyboard.type("/citebot status")
    await page.keyboard.press("Enter")
    await page.locator(".message.private[data-finished]").wait_for()
    await look("a command that one person sees")
    change = page.locator("#flow .change summary").first
    await change.focus()
    await page.keyboard.press("Enter")
    await look("a message that is edited")
    await page.locator(".change textarea:focus").wait_for()
    await page.keyboard.type(" And who calls it?")
    await page.get_by_role("button", name="Save").focus()
    await page.keyboard.press("Enter")
    await page.locator("#flow .message", has_text="(edited)").locator("p", has_text="sent? And who").wait_for()
    assert await page.locator(".change[open]").count() == 0
    await change.focus()
    await page.keyboard.press("Enter")
    await page.locator(".change textarea:focus").wait_for()
    await page.get_by_role("button", name="Delete the message").focus()
    await page.keyboard.press("Enter")
    await page.locator('[data-message="1"]').wait_for(state="detached")
    await page.get_by_role("button", name="Bob").focus()
    await page.keyboard.press("Enter")
    await page.locator("[aria-pressed=true]", has_text="B").wait_for()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["wide and light", "narrow and dark"])
async def test_one_uses_all_of_it_with_the_keyboard_and_axe_finds_nothing(
    workspace: ServedWorkspace, width: int, *, dark: bool
) -> None:
    workspace.citing.text = ANSWER
    async with open_tab(workspace, width=width, dark=dark) as tab:
        audit = Audit(tab)

        async def look(state: str) -> None:
            await audit.look(state)
            assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state

        await ask_in_a_thread(tab.page, workspace.citing, look)
        await decide_and_react(tab.page, workspace.workspace, look)
        await use_the_rest(tab.page, look)
        await audit.open("/c/dm-bob", "a direct conversation")
        await audit.open("/nowhere", "missing")
        tab.said.clear()  # of the missing page, the console is told

    assert audit.findings == []
    assert len(audit.states) == 10
