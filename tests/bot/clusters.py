"""Real processes that share the work of one team over the fake Slack: fronts, answerers and indexers on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from bot.serving.cluster import Role
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.fakes.serving import serve
from tests.fakes.slack import FakeSlack, Seen
from tests.forks import Fork, ForkServer
from tests.waiting import LIMIT_SECONDS, expect


@dataclass(frozen=True, kw_only=True)
class Member:
    """One process of a cluster: where its metrics are."""

    fork: Fork
    role: Role
    metrics: str

    async def get(self, path: str) -> tuple[int, Any]:
        """Ask for a path as anyone who looks after the process does; 0 while nothing listens."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.metrics}{path}") as answer:
                is_json = answer.content_type == "application/json"
                return answer.status, await answer.json() if is_json else await answer.text()
        except aiohttp.ClientError:
            return 0, ""

    async def read_figures(self) -> Mapping[str, float]:
        """Read its metrics, by their names with labels."""
        _, text = await self.get("/metrics")
        lines = [line.rpartition(" ") for line in str(text).splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}


class Cluster:
    """The processes of one test, and Ann who asks them in a channel."""

    def __init__(self, fake: FakeSlack, forks: ForkServer, variables: Mapping[str, str], directory: Path) -> None:
        fake.limits.enabled = False
        self.fake = fake
        self.ann = fake.add_user("ann")
        self.channel = fake.add_channel("general", members=(self.ann,))
        self.members: list[Member] = []
        self.is_hurried = False  # those that are started from now on call the platform as often as they like
        self._forks = forks
        self._directory = directory
        self._variables = {
            "PATH": os.environ["PATH"],
            "CITEBOT_WEB_PORT": "0",
            "CITEBOT_QUESTIONS_PER_MINUTE": "10000",
            "CITEBOT_QUESTIONS_PER_DAY": "10000",
            "CITEBOT_POLL_SECONDS": "5",
            "SLACK_BOT_TOKEN": fake.bot_token,
            "SLACK_APP_TOKEN": fake.app_token,
            "SLACK_API_BASE_URL": fake.api_url,
            **variables,
        }

    async def start(self, role: Role, *, point: str = "", **variables: str) -> Member:
        """Start a process that is killed at the point, and wait until it is ready."""
        port = find_free_port()
        home = self._directory / f"home {port}"  # each process has a machine of its own
        environment = self._variables | {"CITEBOT_METRICS_PORT": str(port), "CITEBOT_HOME": str(home)} | variables
        fork = await asyncio.to_thread(
            self._forks.start, serve, str(self._directory), point, role, self.is_hurried, env=environment
        )
        member = Member(fork=fork, role=role, metrics=f"http://127.0.0.1:{port}")
        self.members.append(member)
        await wait_until(lambda: is_ready(member))
        return member

    async def end(self, member: Member, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; return how it ended."""
        self.members.remove(member)
        return await member.fork.end(number)

    async def close(self) -> None:
        """Kill what still runs."""
        for member in list(self.members):
            await self.end(member, signal.SIGKILL)

    async def ask(self, text: str, thread: str | None = None) -> str:
        """Mention citebot; return the id of the message."""
        return await self.fake.mention(self.channel, self.ann, text, thread)

    def read(self, thread: str) -> list[Seen]:
        """What hangs below a question."""
        return self.fake.answers(self.channel, thread)

    async def wait_for_answer(self, thread: str, text: str = "") -> Seen:
        """Wait for the whole answer to a question, which contains a text."""

        def find() -> list[Seen]:
            return [seen for seen in self.read(thread) if "citebot_rate" in seen.buttons and text in seen.text]

        return (await self.fake.until(find, within=LIMIT_SECONDS))[-1]


def share(url: str, repository: GitRepo, folder: Path) -> Mapping[str, str]:
    """What processes share: a database, an object store, and the repository, which only indexers look at."""
    table = f'[[repositories]]\npath = "{repository.root}"\nname = "shop"\n'
    config = folder / "citebot.toml"
    config.write_text(table, encoding="utf-8")
    return {
        "DATABASE_URL": url,
        "SEGMENTS_URL": f"file://{folder / 'bucket'}",
        "CITEBOT_CONFIG": str(config),
    }


async def is_ready(member: Member) -> bool:
    """Whether a process says that it is ready."""
    return (await member.get("/readyz"))[0] == 200


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask processes until something is so."""
    async with expect("condition()"):
        while not await condition():  # noqa: ASYNC110 - seen over HTTP alone
            await asyncio.sleep(0.05)
