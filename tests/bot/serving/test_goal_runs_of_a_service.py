"""Goal runs of a served team as processes carry them out: in the real sandbox, killed, taken up again, and stopped."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent import AgentError
from bot.adapters.slack.rendering import PREFIX
from bot.app import examine_sandboxes
from bot.settings import Settings
from bot.surfaces.principals import hash_token
from tests.agent.goals.conftest import PARSER
from tests.agent.goals.test_goal_runs import claim_test
from tests.bot.offices import Processes, in_slack
from tests.bot.slack_worlds import shown
from tests.bot.surfaces.goal_worlds import ApiCaller
from tests.fakes.gemini import FakeGemini, calls, running_gemini
from tests.fakes.prepared_python import prepared_python
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack
from tests.forks import ForkServer
from tests.waiting import LIMIT_SECONDS, wait_until

ENDLESS = "sleep 271.8281"
CONFIG = """
[[repositories]]
path = "{root}"
name = "parser"
web_url = "https://git.example/team/parser"
[access]
run = ["slack:{person}"]
[sandbox]
python = "{python}"
"""


@pytest.fixture
def python() -> Iterator[Path]:
    with prepared_python() as folder:
        yield folder


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with running_gemini() as fake:
        yield fake


class Asker:
    """Ann in a channel of the fake Slack, where she may have goal runs begin."""

    def __init__(self, fake: FakeSlack) -> None:
        self.id = fake.add_user("anna")
        self._fake = fake
        self._channel = fake.add_channel("parsers", members=(self.id,))

    async def ask(self, text: str, thread: str | None = None) -> str:
        return await self._fake.mention(self._channel, self.id, text, thread)

    async def approve(self, thread: str) -> None:
        (proposal,) = self._fake.answers(self._channel, thread)
        await self._fake.press(self._channel, proposal.ts, f"{PREFIX}approve", user=self.id)

    def read(self, thread: str) -> list[str]:
        """What citebot wrote in a thread, without the messages that files are."""
        return list(filter(None, map(shown, self._fake.answers(self._channel, thread))))

    async def see(self, thread: str, text: str) -> str:
        """Wait until a reply in a thread has a text, and return it."""
        found = await self._fake.until(lambda: [one for one in self.read(thread) if text in one], within=LIMIT_SECONDS)
        return found[0]


def write_settings(ann: Asker, gemini: FakeGemini, python: Path, folder: Path) -> Mapping[str, str]:
    repository = GitRepo(folder / "parser")
    for path, text in PARSER.items():
        repository.write(path, text)
    repository.commit()
    config = folder / "citebot.toml"
    config.write_text(CONFIG.format(root=repository.root, person=ann.id, python=python))
    return {
        "PATH": os.environ["PATH"],
        "CITEBOT_HOME": str(folder / "home"),
        "CITEBOT_CONFIG": str(config),
        "CITEBOT_WEB_PORT": "0",
        "CITEBOT_METRICS_PORT": "0",
        "GOOGLE_API_KEY": "key-of-the-test",
        "GOOGLE_API_BASE_URL": gemini.url,
    }


async def require_sandbox(variables: Mapping[str, str], folder: Path) -> None:
    try:
        *_, last = await examine_sandboxes(Settings.load(variables, folder))
    except AgentError as error:
        pytest.skip(f"no sandbox works here: {error}")
    if last.problem:
        pytest.skip(f"no sandbox works here: {last.problem}")


def is_running(command: str) -> bool:
    """Whether any process of the machine runs a command."""
    words = command.encode().split()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().split(b"\0")[:-1] == words:
                return True
        except OSError:  # it has just ended
            continue
    return False


@pytest.mark.exhaustive
async def test_a_run_goes_on_after_a_kill_and_another_is_stopped_with_its_command(
    forks: ForkServer, python: Path, gemini: FakeGemini, tmp_path: Path
) -> None:
    async with in_slack() as office:
        ann = Asker(office.fake)
        variables = write_settings(ann, gemini, python, tmp_path)
        await require_sandbox(variables, tmp_path)
        processes = Processes(forks, variables, tmp_path, [office])
        try:
            dying = await processes.start("command!2")
            gemini.replies += [
                calls(("bash_exec", {"command": "cat parser.py"})),
                calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(8)})),
            ]
            thread = await ann.ask("check that parse('7') returns [8]")
            proposal = await ann.see(thread, "Shall I start it?")
            assert "All of it runs in a sandbox" in proposal
            await ann.approve(thread)
            assert await processes.end(dying, 0) == -signal.SIGKILL

            second = await processes.start()
            verdict = await ann.see(thread, "**False.** The claim is false")
            assert "assert call() == [8]" in verdict
            assert "https://git.example/team/parser/blob/" in verdict
            assert len(gemini.received) == 2
            await office.until(lambda: any(each.shared for each in office.fake.files.stored.values()))
            assert len(ann.read(thread)) == 1

            gemini.script = lambda _: calls(("bash_exec", {"command": ENDLESS}))
            thread = await ann.ask("make test_parser.py pass")
            await ann.see(thread, "Shall I start it?")
            await ann.approve(thread)
            await ann.see(thread, ENDLESS)
            await wait_until(lambda: is_running(ENDLESS), "is_running(ENDLESS)")
            await ann.ask("stop", thread)
            await ann.see(thread, "Stopped, as you asked.")
            assert not is_running(ENDLESS)
            assert await processes.end(second) == 128 + signal.SIGTERM
        finally:
            await processes.close()


@pytest.mark.exhaustive
async def test_a_run_that_was_asked_for_over_the_api_goes_on_after_a_kill(
    forks: ForkServer, python: Path, gemini: FakeGemini, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    async with in_slack() as office, ApiCaller.open(f"http://127.0.0.1:{port}") as api:
        ann = Asker(office.fake)
        variables = {**write_settings(ann, gemini, python, tmp_path), "CITEBOT_WEB_PORT": port}
        with (tmp_path / "citebot.toml").open("a") as config:
            config.write(f'[[mcp.tokens]]\nperson = "slack:{ann.id}"\nsha256 = "{hash_token("citebot_of-ann")}"\n')
        await require_sandbox(variables, tmp_path)
        processes = Processes(forks, variables, tmp_path, [office])
        try:
            dying = await processes.start("command!2")
            gemini.replies += [
                calls(("bash_exec", {"command": "cat parser.py"})),
                calls(("file_write", {"path": "test_citebot_claim.py", "content": claim_test(8)})),
            ]
            status, asked = await api.call("ann", body={"goal": "claim", "task": "parse('7') returns [8]"})
            assert (status, asked["state"]) == (200, "proposed")
            await api.call("ann", f"/{asked['id']}/resume", {"decision": "approve", "proposal": asked["proposal"]})
            assert await processes.end(dying, 0) == -signal.SIGKILL

            second = await processes.start()
            end = await api.see_end("ann", asked["id"])
            assert "**False.** The claim is false" in end["text"]
            assert "+def test_claim_holds():" in end["patch"]["text"]
            assert len(gemini.received) == 2
            assert await processes.end(second) == 128 + signal.SIGTERM
        finally:
            await processes.close()
