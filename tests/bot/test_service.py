"""Citebot serving a team as real processes, over the fake Slack: killed anywhere, told to end, wrongly set up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.adapters.slack.connections import CONNECTIONS
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack, Seen

ROOT = Path(__file__).parent.parent.parent
LIMIT = 30
MOST_CALLS = 12
QUESTION = "where is parse_date defined?"
# One turn without a model: its nodes, and its journal.
NODES = ("security_gateway", "input_preprocessor", "router", "retrieval", "synthesis", "check_citations")
POINTS = (
    "begin>", *(f"{node}{sign}" for node in NODES for sign in "<>"), "conversation_memory<", "conversation_memory|",
    "end<", "end>", "answer!",
)  # fmt: skip


class Processes:
    """Starts and ends processes that serve."""

    def __init__(self, server: asyncio.subprocess.Process, variables: Mapping[str, str], directory: Path) -> None:
        self._server = server
        self._variables = variables
        self._directory = directory
        self._running: set[int] = set()

    async def start(self, point: str = "", **variables: str) -> int:
        pid = await self._ask("start", {**self._variables, **variables}, str(self._directory), point)
        self._running.add(pid)
        return pid

    async def end(self, pid: int, number: int = signal.SIGTERM) -> int:
        code = await self._ask("end", pid, int(number))
        self._running.discard(pid)
        return code

    async def close(self) -> None:
        for pid in list(self._running):
            await self.end(pid, signal.SIGKILL)
        assert self._server.stdin is not None
        self._server.stdin.close()
        await self._server.wait()

    async def _ask(self, *line: Any) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(line).encode() + b"\n")
        async with asyncio.timeout(LIMIT):
            return int(await self._server.stdout.readline())


class Office:
    """A workspace in which citebot serves one repository."""

    def __init__(self, fake: FakeSlack, processes: Processes) -> None:
        self.fake = fake
        self.processes = processes
        self.ann = fake.add_user("ann")
        self.channel = fake.add_channel("general", members=(self.ann,))

    async def start(self, point: str = "", **variables: str) -> int:
        pid = await self.processes.start(point, **variables)
        await self.fake.until(lambda: len(self.fake.socket.connections) >= CONNECTIONS, within=LIMIT)
        return pid

    async def ask(self) -> str:
        return await self.fake.mention(self.channel, self.ann, QUESTION)

    async def answered(self, thread: str) -> list[Seen]:
        """Wait until a message is whole, and everything that was begun is over."""
        await self.fake.until(lambda: any(is_whole(seen) for seen in self.fake.answers(self.channel, thread)), within=LIMIT)
        return self.fake.answers(self.channel, thread)


def is_whole(seen: Seen) -> bool:
    return not seen.streaming and "citebot_rate" in seen.buttons


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> GitRepo:
    made = GitRepo(tmp_path_factory.mktemp("team") / "shop")
    made.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    made.write("shop/orders.py", "from shop.dates import parse_date\n\n\ndef order(text):\n    return parse_date(text)\n")
    made.commit("Sell things")
    return made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest_asyncio.fixture
async def office(repository: GitRepo, home: Path) -> AsyncIterator[Office]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.serving",
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with FakeSlack() as fake:
        fake.limits.enabled = False
        variables = {
            "PATH": os.environ["PATH"],
            "CITEBOT_HOME": str(home),
            "SLACK_BOT_TOKEN": fake.bot_token,
            "SLACK_APP_TOKEN": fake.app_token,
            "SLACK_API_BASE_URL": fake.api_url,
        }
        processes = Processes(server, variables, repository.root)
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


async def test_a_turn_killed_at_any_call_is_finished_in_the_same_message(office: Office) -> None:
    """Kills at the first call of a turn, then at the second, and so on: before it takes effect, and after."""
    killed = 0
    for after in (False, True):
        for number in range(MOST_CALLS):
            pid = await office.start()
            gate = office.fake.faults.hang("*", skip=number, after=after)
            thread = await office.ask()
            await office.fake.until(lambda: gate.waiting or any(map(is_whole, office.fake.answers(office.channel, thread))), within=LIMIT)
            print([c.method for c in office.fake.calls])
            if not gate.waiting:
                break
            assert await office.processes.end(pid, signal.SIGKILL) == -signal.SIGKILL
            office.fake.faults.clear()
            killed += 1
            second = await office.start()
            (seen,) = await office.answered(thread)
            assert "shop/dates.py" in seen.text
            await office.processes.end(second)
    assert killed > 5
