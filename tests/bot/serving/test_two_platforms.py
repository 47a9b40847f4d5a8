"""Two platforms in one real process: what happens to one of them holds the other one up in nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.bot.offices import DiscordOffice, Office, Processes, SlackOffice, in_discord, in_slack
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.fakes.served import got
from tests.forks import ForkServer
from tests.waiting import expect

pytestmark = pytest.mark.exhaustive

ENDED = 128 + signal.SIGTERM
REVOKED = 4004


@dataclass(kw_only=True)
class Firm:
    """A team in Slack and in Discord, and the processes that serve both."""

    slack: SlackOffice
    discord: DiscordOffice
    processes: Processes
    address: str

    async def check_readiness(self, platform: str) -> str:
        """Ask a process why a platform is not heard; nothing if it is."""
        _, record = await got(self.address, "/readyz")
        return str(record["platforms"][platform]["sentence"])

    async def until_told(self, platform: str, words: str) -> None:
        """Wait until a process says something about a platform."""
        async with expect("words in self.check_readiness(platform)"):
            while words not in await self.check_readiness(platform):  # noqa: ASYNC110 - seen over HTTP alone
                await asyncio.sleep(0.1)


@pytest_asyncio.fixture
async def firm(repository: GitRepo, forks: ForkServer, tmp_path: Path) -> AsyncIterator[Firm]:
    async with in_slack() as slack, in_discord() as discord:
        port = find_free_port()
        ports = {"CITEBOT_WEB_PORT": "0", "CITEBOT_METRICS_PORT": str(port)}
        variables = {"PATH": os.environ["PATH"], "CITEBOT_HOME": str(tmp_path), **ports}
        processes = Processes(forks, variables, repository.root, [slack, discord])
        address = f"http://127.0.0.1:{port}"
        try:
            yield Firm(slack=slack, discord=discord, processes=processes, address=address)
        finally:
            await processes.close()


async def answered(office: Office, question: str) -> None:
    """Wait until a question has its one answer."""
    await office.until(lambda: office.is_answered(question))
    (text,) = office.replies(question)
    assert "shop/dates.py" in text


@pytest.mark.parametrize(("away", "other"), [("discord", "slack"), ("slack", "discord")])
async def test_people_are_answered_while_the_other_platform_is_away(firm: Firm, away: str, other: str) -> None:
    offices: dict[str, SlackOffice | DiscordOffice] = {"slack": firm.slack, "discord": firm.discord}
    offices[away].fake.faults.http("*", 503, times=None)
    pid = await firm.processes.start(heard=[offices[other]])

    await answered(offices[other], await offices[other].ask())
    await firm.until_told(away, "503" if away == "slack" else "Discord cannot be reached")
    assert await firm.check_readiness(other) == ""

    offices[away].recover()
    await offices[away].until(lambda: offices[away].is_connected)
    await answered(offices[away], await offices[away].ask())
    assert await firm.processes.end(pid) == ENDED


async def test_an_answer_that_was_left_is_finished_once_its_platform_is_back(firm: Firm) -> None:
    dying = await firm.processes.start()
    gate = firm.discord.hang(firm.discord.opening, after=True)
    question = await firm.discord.ask()
    await firm.discord.until(lambda: gate.waiting)
    await firm.processes.end(dying, signal.SIGKILL)
    firm.discord.recover()
    firm.discord.fake.faults.http("*", 503, times=None)

    second = await firm.processes.start(heard=[firm.slack])
    await answered(firm.slack, await firm.slack.ask())
    firm.discord.recover()

    await answered(firm.discord, question)
    assert await firm.processes.end(second) == ENDED


async def test_a_revoked_token_leaves_the_other_platform_served(firm: Firm) -> None:
    pid = await firm.processes.start()
    await answered(firm.discord, await firm.discord.ask())
    firm.discord.fake.gateway.close_with(REVOKED)

    await firm.until_told("discord", "choose Bot > Reset Token, and set DISCORD_TOKEN")

    await answered(firm.slack, await firm.slack.ask())
    assert await firm.check_readiness("slack") == ""
    assert await firm.processes.end(pid) == ENDED


async def test_an_answer_under_way_outlives_a_revoked_token(firm: Firm) -> None:
    pid = await firm.processes.start()
    gate = firm.discord.hang(firm.discord.opening, after=True)
    question = await firm.discord.ask()
    await firm.discord.until(lambda: gate.waiting)
    firm.discord.fake.gateway.close_with(REVOKED)
    await firm.until_told("discord", "Reset Token")
    assert await firm.processes.end(pid) == ENDED
    firm.discord.recover()

    second = await firm.processes.start()

    await answered(firm.discord, question)
    assert await firm.processes.end(second) == ENDED
