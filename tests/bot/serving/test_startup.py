"""A start while a platform is away for its first calls: citebot serves within seconds of its return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bot.errors import BotError
from bot.serving import service
from bot.settings import Settings
from tests.fakes.discord import FakeDiscord
from tests.fakes.repositories import GitRepo
from tests.fakes.served import variables
from tests.fakes.slack import FakeSlack
from tests.waiting import expect

SLACK: dict[str, Callable[[FakeSlack], object]] = {
    "429 to auth.test": lambda fake: fake.faults.ratelimited("auth.test"),
    "auth.test is broken off": lambda fake: fake.faults.reset("auth.test"),
    "503 to the check of the app token": lambda fake: fake.faults.http("apps.connections.open", 503),
    "503 to the first connection": lambda fake: fake.faults.http("apps.connections.open", 503, skip=1),
    "503 to everything, at first": lambda fake: fake.faults.http("*", 503, times=2),
}
DISCORD: dict[str, Callable[[FakeDiscord], object]] = {
    "503 to the login": lambda fake: fake.faults.http("get_current_user", 503),
    "429 to the login": lambda fake: fake.faults.ratelimited("get_current_user", retry_after=0.5),
    "the login is broken off": lambda fake: fake.faults.reset("get_current_user"),
    "503 to the application": lambda fake: fake.faults.http("get_current_application", 503),
    "503 to the commands": lambda fake: fake.faults.http("get_global_application_commands", 503),
    "503 of the gateway": lambda fake: _away(fake, 0.3),
}


def _away(fake: FakeDiscord, seconds: float) -> None:
    fake.gateway.down = 503
    asyncio.get_running_loop().call_later(seconds, setattr, fake.gateway, "down", None)


async def start(settings: dict[str, str], repository: Path, directory: Path) -> None:
    """Serve until the first line is said; raises what ends it before."""
    said = asyncio.Event()
    serving = asyncio.create_task(
        service.serve_team(Settings.load(settings, directory), repository, lambda _: said.set())
    )
    saying = asyncio.create_task(said.wait())
    async with expect("the first line of a server"):
        await asyncio.wait({serving, saying}, return_when=asyncio.FIRST_COMPLETED)
    saying.cancel()
    if serving.done():
        serving.result()
    assert said.is_set()
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving


def discord_variables(fake: FakeDiscord, home: Path) -> dict[str, str]:
    return {
        "CITEBOT_HOME": str(home), "CITEBOT_WEB_PORT": "0", "CITEBOT_METRICS_PORT": "0", "DISCORD_TOKEN": fake.token,
        "DISCORD_API_BASE_URL": fake.api_url, "DISCORD_GATEWAY_URL": fake.gateway_url,
    }  # fmt: skip


@pytest.mark.parametrize("trouble", SLACK)
async def test_slack_is_served_after_trouble(trouble: str, repository: GitRepo, tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        SLACK[trouble](fake)
        await start(variables(fake, tmp_path / "data"), repository.root, tmp_path)


@pytest.mark.parametrize("trouble", DISCORD)
async def test_discord_is_served_after_trouble(trouble: str, repository: GitRepo, tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        DISCORD[trouble](fake)
        await start(discord_variables(fake, tmp_path / "data"), repository.root, tmp_path)


async def test_a_token_that_slack_refuses_is_said_at_once(repository: GitRepo, tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        wrong = variables(fake, tmp_path / "data") | {"SLACK_BOT_TOKEN": "xoxb-wrong"}
        with pytest.raises(BotError, match="invalid_auth"):
            await start(wrong, repository.root, tmp_path)

        assert len(fake.calls_of("auth.test")) == 1


async def test_an_app_token_that_slack_refuses_is_said_at_once(repository: GitRepo, tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        wrong = variables(fake, tmp_path / "data") | {"SLACK_APP_TOKEN": "xapp-wrong"}
        with pytest.raises(BotError, match="SLACK_APP_TOKEN"):
            await start(wrong, repository.root, tmp_path)

        assert len(fake.calls_of("apps.connections.open")) == 1


async def test_a_token_that_discord_refuses_is_said_at_once(repository: GitRepo, tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        wrong = discord_variables(fake, tmp_path / "data") | {"DISCORD_TOKEN": "a.wrong.token"}
        with pytest.raises(BotError, match="Discord refuses the token"):
            await start(wrong, repository.root, tmp_path)

        assert len(fake.calls_of("get_current_user")) == 1
