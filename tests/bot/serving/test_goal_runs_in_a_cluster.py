"""Goal runs where a front hears people and answerers run: in the real sandbox, killed, taken over, and stopped."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.adapters.slack.rendering import PREFIX
from tests.agent.goals.conftest import PARSER
from tests.agent.goals.test_goal_runs import claim_test
from tests.bot.clusters import Cluster, share
from tests.bot.serving.test_goal_runs_of_a_service import ENDLESS, is_running, python, require_sandbox
from tests.bot.slack_worlds import shown
from tests.fakes.gemini import FakeGemini, calls
from tests.fakes.postgres import make_database
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack
from tests.forks import ForkServer
from tests.waiting import LIMIT_SECONDS, expect, wait_until

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("postgres")]

__all__ = ["python"]  # a fixture

RUNS = """
[access]
run = ["slack:{person}"]
[sandbox]
python = "{python}"
"""
STOP_SECONDS = 2.0 + 4.0  # and what a busy machine takes for it


@pytest_asyncio.fixture
async def cluster(forks: ForkServer, gemini: FakeGemini, python: Path, tmp_path: Path) -> AsyncIterator[Cluster]:
    repository = GitRepo(tmp_path / "parser")
    for path, text in PARSER.items():
        repository.write(path, text)
    repository.commit()
    async with make_database() as url, FakeSlack() as fake:
        model = {"GOOGLE_API_KEY": "key-of-the-test", "GOOGLE_API_BASE_URL": gemini.url}
        variables = {**share(url, repository, tmp_path), **model}
        made = Cluster(fake, forks, variables, tmp_path)
        config = tmp_path / "citebot.toml"
        config.write_text(config.read_text() + RUNS.format(person=made.ann, python=python))
        await require_sandbox({**variables, "CITEBOT_HOME": str(tmp_path / "home")}, tmp_path)
        try:
            yield made
        finally:
            await made.close()


async def see(cluster: Cluster, thread: str, text: str) -> str:
    """Wait until a reply in a thread has a text, and return it."""
    found = await cluster.fake.until(
        lambda: [one for one in read(cluster, thread) if text in one], within=LIMIT_SECONDS
    )
    return str(found[0])


def read(cluster: Cluster, thread: str) -> list[str]:
    """What citebot wrote in a thread, without the messages that files are."""
    return list(filter(None, map(shown, cluster.read(thread))))


async def press(cluster: Cluster, thread: str, action: str) -> None:
    """Press a button of the one reply, which the front hears."""
    (reply,) = cluster.read(thread)
    await cluster.fake.press(cluster.channel, reply.ts, f"{PREFIX}{action}", user=cluster.ann)


async def wait_for_command() -> None:
    """Wait until the endless command runs: it is shown before it begins."""
    await wait_until(lambda: is_running(ENDLESS), "is_running(ENDLESS)")


async def test_a_goal_run_goes_on_in_another_answerer_when_its_own_is_killed(
    cluster: Cluster, gemini: FakeGemini
) -> None:
    for role in ("index", "front"):
        await cluster.start(role)
    dying = await cluster.start("answer", point="command!2")
    gemini.replies += [
        calls(("bash_exec", {"command": "cat parser.py"})),
        calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(8)})),
    ]
    thread = await cluster.ask("check that parse('7') returns [8]")
    assert "All of it runs in a sandbox" in await see(cluster, thread, "Shall I start it?")
    await press(cluster, thread, "approve")
    assert await cluster.end(dying, 0) == -signal.SIGKILL

    await cluster.start("answer")
    verdict = await see(cluster, thread, "**False.** The claim is false")
    assert "assert call() == [8]" in verdict
    assert len(gemini.received) == 2
    await cluster.fake.until(
        lambda: any(each.shared for each in cluster.fake.files.stored.values()), within=LIMIT_SECONDS
    )
    assert len(read(cluster, thread)) == 1


async def test_a_goal_run_is_stopped_from_the_front_with_its_command(cluster: Cluster, gemini: FakeGemini) -> None:
    for role in ("index", "front", "answer"):
        await cluster.start(role)
    gemini.script = lambda _: calls(("bash_exec", {"command": ENDLESS}))
    thread = await cluster.ask("make test_parser.py pass")
    await see(cluster, thread, "Shall I start it?")
    await press(cluster, thread, "approve")
    await see(cluster, thread, ENDLESS)
    await wait_for_command()

    await press(cluster, thread, "stop")
    async with expect("see(cluster, thread, 'Stopped, as you asked.')"):
        await see(cluster, thread, "Stopped, as you asked.")
    assert not is_running(ENDLESS)
    assert len(read(cluster, thread)) == 1
