"""The page as axe-core judges it, in every state that people meet; skipped if there is no Chromium."""

from __future__ import annotations

from importlib.resources import files

import pytest

from tests.bot.surfaces.web.conftest import Site
from tests.bot.surfaces.web.test_browser import Tab, open_tab

ANSWER = """\
Events are sent by `Session.send` [1].

## How

1. `open` connects, and
2. `send` writes.

> Quoted, with a [link](https://git.example/demo).

| a | b |
|---|---|
| 1 | 2 |

```python
def send(event: str) -> None:  # the one way out
    return channel.write(b"x" + event.encode())
```

```mermaid
flowchart TD
    A[Event] --> B{Is it open?}
    B -->|yes| C(Write)
    B -->|no| D[Connect] --> C
```

```mermaid
sequenceDiagram
    Session->>Channel: write(event)
    Note over Channel: kept in order
    Channel--)Session: done
```
"""

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("chromium")]


class Audit:
    """Collects what axe-core finds in the states of one tab."""

    def __init__(self, tab: Tab) -> None:
        self.findings: list[str] = []
        self.states: list[str] = []
        self._tab = tab
        self._axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")

    async def look(self, state: str) -> None:
        """Judge the page as it is now."""
        await self._tab.page.evaluate(self._axe)
        found = await self._tab.page.evaluate("axe.run({resultTypes: ['violations']})")
        assert len(found["passes"]) > 10, state
        self.states.append(state)
        self.findings += [
            f"{state}: {rule['id']}: {node['html']}" for rule in found["violations"] for node in rule["nodes"]
        ]

    async def open(self, path: str, state: str) -> None:
        """Judge another page."""
        await self._tab.page.goto(f"{self._tab.site.address}{path}")
        await self.look(state)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["wide and light", "narrow and dark"])
async def test_axe_finds_nothing_in_any_state_of_the_page(site: Site, width: int, *, dark: bool) -> None:
    assert site.answerer.gate is not None
    site.answerer.text = ANSWER
    async with open_tab(site, width=width, dark=dark) as tab:
        page, audit = tab.page, Audit(tab)
        await audit.look("start")
        await page.fill("#question", " ")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await page.locator(".problem:not(:empty)").wait_for()
        await audit.look("refused")

        site.answerer.gate.clear()
        site.answerer.begins_with = "So far there is this sentence, which is long enough to be sent at once."
        await tab.ask("where are events sent?")
        await page.get_by_text("So far there is this sentence").wait_for()
        await audit.look("running")
        site.answerer.gate.set()
        await tab.answered()
        await page.locator("#panel tr.cited").first.wait_for()
        await audit.look("answered, with the cited code")
        address = page.url

        await page.locator(".after a.button").click()
        await page.locator("#course svg.graph").wait_for()
        await audit.look("trace")
        await page.locator("summary").first.click()
        await audit.look("a diagram with its source")
        await page.get_by_role("button", name="Helpful", exact=True).click()
        await page.locator("[aria-pressed=true]").wait_for()
        await page.get_by_role("button", name="Share", exact=True).click()
        link = await page.get_by_role("link", name="Link to this answer").get_attribute("href")
        await audit.look("rated and shared")

        site.answerer.gate.clear()
        await tab.ask("and this one?")
        await page.get_by_text("So far there is this sentence").wait_for()
        await page.get_by_role("button", name="Stop", exact=True).click()
        await page.locator(".stopped").wait_for()
        await audit.look("stopped")

        for path, state in (
            (address, "reloaded"), (link or "", "a shared answer"), ("/", "start, with conversations"),
            ("/repositories", "repositories"), ("/runs", "runs"), ("/nowhere", "missing"),
        ):  # fmt: skip
            await audit.open(path.removeprefix(site.address), state)
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("heading", name="Sign in").wait_for()
        await audit.look("signed out")
        tab.said.clear()  # of the missing page, the console is told

    assert audit.findings == []
    assert len(audit.states) == 15
