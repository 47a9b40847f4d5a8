"""Goal runs on the page: asked for in a form, approved by who may, and watched to their verdict."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import aiohttp
import pytest

from tests.bot.surfaces.api.test_goal_runs import DISPROVED
from tests.bot.surfaces.goal_worlds import GoalTeam, open_team
from tests.bot.surfaces.web.test_accessibility import Audit
from tests.bot.surfaces.web.test_browser import open_tab
from tests.fakes.gemini import FakeGemini, Received, Reply
from tests.waiting import wait_until

CLAIM = {"goal": "claim", "task": "parse('7') returns [8]", "repository": "shop", "words": ""}


class Browser:
    """A browser in which somebody has signed in."""

    def __init__(self, team: GoalTeam, session: aiohttp.ClientSession) -> None:
        self._team = team
        self._session = session
        self._csrf = ""

    async def get(self, path: str) -> tuple[int, str]:
        async with self._session.get(f"{self._team.address}{path}") as answer:
            text = await answer.text()
        found = re.search(r'name="csrf" value="([^"]+)"', text)
        self._csrf = found[1] if found else self._csrf
        return answer.status, text

    async def post(self, path: str, fields: Mapping[str, str]) -> tuple[int, str, str]:
        """Send a form; return the status, the path where that led, and the page there."""
        headers, form = {"Origin": self._team.address}, {"csrf": self._csrf, **fields}
        async with self._session.post(f"{self._team.address}{path}", data=form, headers=headers) as answer:
            return answer.status, answer.url.path, await answer.text()


@asynccontextmanager
async def sign_in(team: GoalTeam, who: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        browser = Browser(team, session)
        await browser.post("/login", {"token": f"citebot_of-{who}"})
        await browser.get("/")
        yield browser


async def test_a_run_is_proposed_by_one_and_approved_by_another_on_the_page(tmp_path: Path, gemini: FakeGemini) -> None:
    gemini.script = lambda _: DISPROVED
    async with (
        open_team(tmp_path, gemini) as team,
        sign_in(team, "ben") as ben,
        sign_in(team, "ann") as ann,
        sign_in(team, "kim") as kim,
    ):
        status, _, page = await ben.post("/goals", CLAIM | {"goal": "pytest", "words": "'open"})
        assert (status, "No closing quotation" in page, "returns [8]" in page) == (422, True, True)
        _, path, _ = await ben.post("/goals", CLAIM)

        async def is_proposed() -> bool:
            return "Waiting for approval" in (await ben.get(path))[1]

        await wait_until(is_proposed, "is_proposed()")
        _, page = await ann.get(path)
        proposal = re.search(r'name="proposal" value="([^"]+)"', page)
        assert proposal is not None
        assert "parse('7') returns [8]" in page.replace("&#39;", "'").replace("&#x27;", "'")
        assert (await kim.get(path))[0] == 404
        approval = {"decision": "approve", "proposal": proposal[1]}
        assert (await ben.post(f"{path}/decide", approval))[2].count("You aren&#39;t allowed to start goal runs") == 1
        assert (await ann.post(f"{path}/decide", approval | {"proposal": "another"}))[0] == 409
        assert team.bench.sandbox.lines == []

        assert (await ann.post(f"{path}/decide", approval))[:2] == (200, path)

        async def is_over() -> bool:
            return ">Ended</p>" in (await ben.get(f"{path}/part"))[1]

        await wait_until(is_over, "is_over()")
        _, page = await ben.get(f"{path}/part")
        assert "<strong>False.</strong> The claim is false" in page
        assert "diff --git a/test_citebot_claim.py" in page
        assert path in (await ann.get("/goals"))[1]
        assert path not in (await kim.get("/goals"))[1]


@pytest.mark.exhaustive
@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["wide and light", "narrow and dark"])
async def test_axe_finds_nothing_while_a_run_is_asked_for_approved_and_watched(
    tmp_path: Path, gemini: FakeGemini, width: int, *, dark: bool
) -> None:
    gate = Event()

    def write_once_allowed(_: Received) -> Reply:
        gate.wait()
        return DISPROVED

    gemini.script = write_once_allowed
    async with open_team(tmp_path, gemini) as team, open_tab(team, width=width, dark=dark) as tab:
        page, audit = tab.page, Audit(tab)
        await audit.open("/goals", "the form")
        await page.select_option("[name=goal]", "claim")
        await page.select_option("[name=repository]", "shop")
        await page.fill("[name=task]", CLAIM["task"])
        await page.get_by_role("button", name="Propose").click()
        await page.get_by_role("button", name="Approve").wait_for()
        await audit.look("proposed")
        await page.get_by_role("button", name="Approve").click()
        await page.get_by_text("Iteration 1 of 20").first.wait_for()
        await audit.look("running")
        gate.set()
        await page.get_by_text("diff --git").wait_for()
        await audit.look("ended")
        await audit.open("/goals", "the form and a run")
    assert audit.findings == []
    assert len(audit.states) == 5
