"""`citebot serve` where no chat platform is set up: repositories are watched, pushes taken, metrics shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from bot.errors import SettingsError
from bot.serving import service
from bot.serving.platforms import list_platforms
from bot.settings import Settings
from tests.fakes.repositories import GitRepo
from tests.fakes.served import got
from tests.waiting import LIMIT_SECONDS, expect


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.write("dates.py", "def parse_date(text):\n    return text\n")
    made.commit()
    return made


@asynccontextmanager
async def serve_alone(repository: GitRepo, home: Path, more: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """Serve without a platform, and yield what is said at the start."""
    said: list[str] = []
    started = asyncio.Event()

    def say(text: str) -> None:
        said.append(text)
        started.set()

    variables = {"CITEBOT_HOME": str(home), "CITEBOT_WEB_PORT": "0", "CITEBOT_METRICS_PORT": "0", **(more or {})}
    settings = Settings.load(variables, home)
    serving = asyncio.create_task(service.serve_team(settings, repository.root, say))
    waiting = asyncio.create_task(started.wait())
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=LIMIT_SECONDS)
        if serving.done():
            serving.result()
        yield said[0]
    finally:
        waiting.cancel()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


def address(said: str, name: str) -> str:
    found = re.search(rf"{name} at (http://\S+)\. ", said)
    assert found is not None, said
    return found[1]


async def test_the_first_line_says_what_runs_and_what_does_not(repository: GitRepo, tmp_path: Path) -> None:
    async with serve_alone(repository, tmp_path / "home") as said:
        assert said.startswith("No chat platform is configured, so no questions will be answered yet: set ")
        assert "push webhooks are off until CITEBOT_WEBHOOK_SECRET is set." in said
        assert said.endswith("Repositories: shop. Ctrl-C ends it.")


async def test_new_commits_are_indexed_and_the_probes_and_metrics_tell(repository: GitRepo, tmp_path: Path) -> None:
    async with serve_alone(repository, tmp_path / "home") as said:
        local = address(said, "Metrics")

        async def commit_that_is_indexed() -> str | None:
            _, state = await got(local, "/readyz")
            assert state["ready"], state
            commit: str | None = state["repositories"][0]["commit"]
            return commit

        async with expect("commit_that_is_indexed() == repository.sha()"):
            while await commit_that_is_indexed() != repository.sha():  # noqa: ASYNC110 - seen over HTTP alone
                await asyncio.sleep(0.05)
            repository.write("more.py", "def later():\n    return 1\n")
            await asyncio.to_thread(repository.commit)
            while await commit_that_is_indexed() != repository.sha():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
        status, text = await got(local, "/metrics")
        assert status == 200
        assert "citebot_" in text
        assert (await got(address(said, "Listening"), "/healthz"))[0] == 200


async def test_push_webhooks_are_taken_where_a_secret_is_set(repository: GitRepo, tmp_path: Path) -> None:
    secret = {"CITEBOT_WEBHOOK_SECRET": "correct horse battery staple"}
    async with serve_alone(repository, tmp_path / "home", secret) as said:
        assert "push webhooks are on." in said
        async with aiohttp.ClientSession() as session:
            unsigned = await session.post(f"{address(said, 'Listening')}{service.PUSHES}", data=b"{}")

    assert unsigned.status in {401, 403}


@pytest.mark.parametrize(
    "variables",
    [{"SLACK_APP_TOKEN": "xapp-1"}, {"SLACK_SIGNING_SECRET": "0123"}, {"SLACK_APP_TOKEN": "x", "SLACK_MODE": "http"}],
)
def test_half_of_a_platform_is_still_refused(variables: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="SLACK_BOT_TOKEN is not, so Slack cannot be served"):
        list_platforms(Settings.load(variables, tmp_path))
