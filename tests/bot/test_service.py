"""Citebot serving a team as real processes, over the fake Slack: killed anywhere, told to end, wrongly set up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from bot.adapters.slack.connections import CONNECTIONS
from bot.backup import save
from bot.chat import FILE
from bot.database import open_database
from bot.errors import BackupError
from bot.restore import restore
from tests.fakes import pushes
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack, Seen

ROOT = Path(__file__).parent.parent.parent
LIMIT = 30
MOST_CALLS = 12
REDELIVERY = 60.0  # seconds until Slack delivers again what nobody acknowledged
QUESTION = "where is parse_date defined?"
# One turn without a model: its nodes, and its journal.
NODES = ("security_gateway", "input_preprocessor", "router", "retrieval", "synthesis", "check_citations")
POINTS = (
    "begin>", *(f"{node}{sign}" for node in NODES for sign in "<>"), "conversation_memory<", "conversation_memory|",
    "end<", "end>", "answer!",
)  # fmt: skip

REMOTE = """
[[repositories]]
url = "{url}"
name = "shop"
token_variable = "SHOP_TOKEN"
web_url = "https://git.example/team/shop"
"""


class Forks:
    """The program that starts processes and ends them, shared by all tests."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.serving"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def ask(self, *line: Any) -> int:
        async with asyncio.timeout(LIMIT):
            return await asyncio.to_thread(self._asked, line)

    def _asked(self, line: Sequence[Any]) -> int:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        print(json.dumps(line), file=self._program.stdin, flush=True)
        return int(self._program.stdout.readline())

    def close(self) -> None:
        self._program.communicate(timeout=LIMIT)


class Processes:
    """The processes of one test."""

    def __init__(self, forks: Forks, variables: Mapping[str, str], directory: Path) -> None:
        self._forks = forks
        self._variables = variables
        self._directory = directory
        self._running: set[int] = set()

    async def start(self, point: str = "") -> int:
        pid = await self._forks.ask("start", self._variables, str(self._directory), point)
        self._running.add(pid)
        return pid

    async def end(self, pid: int, number: int = signal.SIGTERM) -> int:
        code = await self._forks.ask("end", pid, int(number))
        self._running.discard(pid)
        return code

    async def close(self) -> None:
        for pid in list(self._running):
            await self.end(pid, signal.SIGKILL)


class Office:
    """A workspace in which citebot serves one repository."""

    def __init__(self, fake: FakeSlack, processes: Processes) -> None:
        self.fake = fake
        self.processes = processes
        self.ann = fake.add_user("ann")
        self.channel = fake.add_channel("general", members=(self.ann,))

    async def start(self, point: str = "") -> int:
        pid = await self.processes.start(point)
        await self.fake.until(lambda: len(self.fake.socket.connections) >= CONNECTIONS, within=LIMIT)
        return pid

    async def ask(self) -> str:
        return await self.fake.mention(self.channel, self.ann, QUESTION)

    async def told(self) -> str:
        """Ask, and return the answer."""
        (seen,) = await self.answered(await self.ask())
        return seen.text

    def is_answered(self, thread: str) -> bool:
        return any(map(is_whole, self.fake.answers(self.channel, thread)))

    async def answered(self, thread: str) -> list[Seen]:
        """Wait until a message is whole, and everything that was begun is over."""
        await self.fake.until(lambda: self.is_answered(thread), within=LIMIT)
        return self.fake.answers(self.channel, thread)


def is_whole(seen: Seen) -> bool:
    return not seen.streaming and "citebot_rate" in seen.buttons


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> GitRepo:
    made = GitRepo(tmp_path_factory.mktemp("team") / "shop")
    made.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    made.write(
        "shop/orders.py", "from shop.dates import parse_date\n\n\ndef order(text):\n    return parse_date(text)\n"
    )
    made.commit("Sell things")
    return made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


def variables_of(fake: FakeSlack, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "CITEBOT_HOME": str(home),
        "CITEBOT_QUESTIONS_PER_MINUTE": "1000",
        "CITEBOT_WEB_PORT": "0",
        "SLACK_BOT_TOKEN": fake.bot_token,
        "SLACK_APP_TOKEN": fake.app_token,
        "SLACK_API_BASE_URL": fake.api_url,
    }


@pytest_asyncio.fixture
async def office(repository: GitRepo, home: Path, forks: Forks) -> AsyncIterator[Office]:
    async with FakeSlack() as fake:
        fake.limits.enabled = False
        processes = Processes(forks, variables_of(fake, home), repository.root)
        try:
            yield Office(fake, processes)
        finally:
            await processes.close()


async def test_a_question_is_answered_and_sigterm_ends_the_process(office: Office) -> None:
    pid = await office.start()
    thread = await office.ask()
    (seen,) = await office.answered(thread)

    assert "shop/dates.py" in seen.text
    assert await office.processes.end(pid) == 128 + signal.SIGTERM


@pytest.mark.parametrize("point", POINTS)
async def test_a_turn_killed_at_any_node_is_finished_in_the_same_message(office: Office, point: str) -> None:
    dying = await office.start(point)
    thread = await office.ask()
    assert await office.processes.end(dying, 0) == -signal.SIGKILL

    second = await office.start()

    (seen,) = await office.answered(thread)
    assert "shop/dates.py" in seen.text
    assert await office.processes.end(second) == 128 + signal.SIGTERM


@pytest.mark.parametrize("after", [False, True])
async def test_a_turn_killed_at_any_call_is_finished_in_the_same_message(office: Office, after: bool) -> None:
    """Kills at the first call of a turn, then at the second, and so on: before it takes effect, or after."""
    killed: list[str] = []
    for number in range(MOST_CALLS):
        dying = await office.start()
        gate = office.fake.faults.hang("*", skip=number, after=after)
        thread = await office.ask()
        await office.fake.until(lambda: gate.waiting or office.is_answered(thread), within=LIMIT)  # noqa: B023
        if not gate.waiting:
            break
        killed.append(office.fake.calls[-1].method)
        assert await office.processes.end(dying, signal.SIGKILL) == -signal.SIGKILL
        office.fake.faults.clear()

        second = await office.start()
        office.fake.clock.advance(REDELIVERY)

        (seen,) = await office.answered(thread)
        assert "shop/dates.py" in seen.text
        await office.processes.end(second)
    assert {"chat.startStream", "chat.stopStream"} <= set(killed)


async def test_a_turn_under_way_is_finished_before_sigterm_ends_the_process(office: Office) -> None:
    pid = await office.start()
    gate = office.fake.faults.hang("chat.startStream")
    thread = await office.ask()
    await office.fake.until(lambda: gate.waiting, within=LIMIT)
    ending = asyncio.create_task(office.processes.end(pid))
    await office.fake.until(lambda: not office.fake.socket.connections, within=LIMIT)
    gate.release()

    assert await ending == 128 + signal.SIGTERM
    (seen,) = office.fake.answers(office.channel, thread)
    assert is_whole(seen)


async def test_a_push_to_a_host_is_answered_from_soon_after_its_webhook(
    repository: GitRepo, tmp_path: Path, forks: Forks
) -> None:
    work, directory = GitRepo(tmp_path / "work"), tmp_path / "directory"
    work.write("shop/dates.py", (repository.root / "shop/dates.py").read_bytes())
    work.commit("first")
    directory.mkdir()
    async with serving(GitHost(tmp_path / "host", password="t0ken", looks_around=False)) as host, FakeSlack() as fake:
        work.git("remote", "add", "origin", str(published(work.root, host, "team/shop.git")))
        (directory / "citebot.toml").write_text(REMOTE.format(url=f"{host.url}/team/shop.git"))
        fake.limits.enabled = False
        variables, port = variables_of(fake, tmp_path / "home"), free_port()
        more = {"CITEBOT_WEB_PORT": str(port), "CITEBOT_WEBHOOK_SECRET": pushes.SECRET, "SHOP_TOKEN": "t0ken"}
        processes = Processes(forks, variables | more, directory)
        try:
            office = Office(fake, processes)
            pid = await office.start()
            assert cited(first := work.sha(), "shop/dates.py") in await office.told()
            work.rename("shop/dates.py", "shop/calendar.py")
            await asyncio.to_thread(work.commit, "second")
            await asyncio.to_thread(work.git, "push", "--quiet", "origin", "HEAD")
            await posted(f"http://127.0.0.1:{port}/webhooks/push", pushes.github(after=work.sha()))

            async with asyncio.timeout(LIMIT):
                while cited(work.sha(), "shop/calendar.py") not in (told := await office.told()):
                    assert cited(first, "shop/dates.py") in told

            assert await processes.end(pid) == 128 + signal.SIGTERM
        finally:
            await processes.close()


def cited(commit: str, path: str) -> str:
    return f"https://git.example/team/shop/blob/{commit}/{path}"


async def posted(url: str, delivery: pushes.Delivery) -> None:
    """Post a webhook, as soon as somebody listens."""
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.post(url, data=delivery.body, headers=delivery.headers) as response:
                    assert response.status == 202
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def test_a_slack_that_is_away_at_first_is_tried_again(office: Office) -> None:
    office.fake.faults.http("auth.test", 503)
    pid = await office.start()
    await office.answered(await office.ask())

    assert await office.processes.end(pid) == 128 + signal.SIGTERM


async def test_a_backup_beside_a_serving_process_holds_its_answers(office: Office, home: Path, tmp_path: Path) -> None:
    pid = await office.start()
    await office.answered(await office.ask())
    saved, empty = tmp_path / "saved.tar.gz", tmp_path / "restored"

    await asyncio.to_thread(save, home, saved, now=0.0, indexes=True, force=False)
    with pytest.raises(BackupError, match="Another citebot is using"):
        await asyncio.to_thread(restore, saved, home, force=True)
    await office.answered(await office.ask())  # it goes on

    assert await office.processes.end(pid) == 128 + signal.SIGTERM
    await asyncio.to_thread(restore, saved, empty, force=False)
    async with open_database(empty / FILE) as database:
        (newest,) = await database.rows("SELECT state, handles <> '[]' FROM inbox ORDER BY id DESC LIMIT 1")
    assert newest in {("running", 1), ("done", 1)}  # answered, and perhaps not noted yet


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "There is no platform to serve."),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "Socket Mode needs SLACK_APP_TOKEN"),
        ({"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_MODE": "http"}, "HTTP mode needs SLACK_SIGNING_SECRET"),
    ],
)
def test_a_missing_token_is_one_sentence(
    repository: GitRepo, tmp_path: Path, variables: Mapping[str, str], sentence: str
) -> None:
    environment = {"PATH": os.environ["PATH"], "CITEBOT_HOME": str(tmp_path), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "bot", "serve", "--repo", str(repository.root)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip

    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
