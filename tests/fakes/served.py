"""Citebot serving a repository over the fake Slack in the process of the test, with anyone who looks after it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bot.serving import service
from bot.settings import Settings
from tests.fakes.slack import FakeSlack, Seen
from tests.waiting import LIMIT_SECONDS, expect

Get = Callable[[str], Awaitable[tuple[int, Any]]]


async def got(address: str, path: str, **headers: str) -> tuple[int, Any]:
    """Ask for a path; JSON is read."""
    async with aiohttp.ClientSession() as session, session.get(f"{address}{path}", headers=headers) as answer:
        is_json = answer.content_type == "application/json"
        return answer.status, await answer.json() if is_json else await answer.text()


@dataclass
class Served:
    """What a person in the channel and one at the probes see."""

    fake: FakeSlack
    said: list[str] = field(default_factory=list)
    ann: str = ""
    channel: str = ""

    @property
    def address(self) -> str:
        """The address in the line that is said at the start."""
        found = re.search(r"Listening at (http://\S+)\. ", self.said[0])
        assert found is not None, self.said
        return found[1]

    @property
    def metrics_address(self) -> str:
        """The address for those who look after the process."""
        found = re.search(r"Metrics at (http://\S+)\. ", self.said[0])
        assert found is not None, self.said
        return found[1]

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """Ask for a path as anyone who looks after the process does; JSON is read."""
        return await got(self.metrics_address, path, **headers)

    async def get_outside(self, path: str, **headers: str) -> tuple[int, Any]:
        """Ask for a path as others do."""
        return await got(self.address, path, **headers)

    async def figures(self) -> dict[str, float]:
        """Everything that Prometheus would read: `name{label="value"}` with labels in the order of their names."""
        _, text = await self.get("/metrics")
        return {
            sample.name + "".join(f"[{sample.labels[label]}]" for label in sorted(sample.labels)): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    async def until_figure(self, name: str) -> dict[str, float]:
        """Wait until a figure is there."""
        async with expect("name in (found := self.figures())"):
            while name not in (found := await self.figures()):  # noqa: ASYNC110 - seen over HTTP alone
                await asyncio.sleep(0.02)
        return found

    async def ask(self, question: str) -> Seen:
        """Ask in the channel, and wait for the whole answer."""
        thread = await self.fake.mention(self.channel, self.ann, question)

        def settled() -> list[Seen]:
            answers = self.fake.answers(self.channel, thread)
            return [each for each in answers if not each.streaming and "citebot_stop" not in each.buttons]

        (seen,) = await self.fake.until(settled, within=LIMIT_SECONDS)
        return seen


def variables(fake: FakeSlack, home: Path) -> dict[str, str]:
    """The environment that citebot needs to serve on the fake."""
    return {
        "CITEBOT_HOME": str(home),
        "CITEBOT_WEB_PORT": "0",
        "CITEBOT_METRICS_PORT": "0",
        "SLACK_BOT_TOKEN": fake.bot_token,
        "SLACK_APP_TOKEN": fake.app_token,
        "SLACK_SIGNING_SECRET": fake.signing_secret,
        "SLACK_API_BASE_URL": fake.api_url,
    }


@asynccontextmanager
async def served(
    fake: FakeSlack, repository: Path, home: Path, more: Mapping[str, str] | None = None, *, directory: Path
) -> AsyncIterator[Served]:
    """Serve until the context ends; yields once the line at the start is said."""
    fake.limits.enabled = False
    made = Served(fake)
    made.ann = fake.add_user("ann")
    made.channel = fake.add_channel("general", members=(made.ann,))
    started = asyncio.Event()

    def say(text: str) -> None:
        made.said.append(text)
        started.set()

    settings = Settings.load(variables(fake, home) | dict(more or {}), directory)
    serving = asyncio.create_task(service.serve_team(settings, repository, say))
    waiting = asyncio.create_task(started.wait())
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=LIMIT_SECONDS)
        if serving.done():
            serving.result()
        yield made
    finally:
        waiting.cancel()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
