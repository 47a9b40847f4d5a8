"""Answers in the channels of a real service whose repository is pushed to: what they show, and when they keep still."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.storage.database import INBOX_FILE, open_database
from tests.bot.offices import OFFICES, Office, Processes
from tests.bot.serving.test_service import REMOTE, posted
from tests.fakes import pushes
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.loopback.faults import Gate
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.forks import Fork, ForkServer
from tests.waiting import wait_until

DATES = 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n'
OUTDATED = "Outdated since"


@dataclass
class Team:
    """A repository that is pushed to, and a service that answers about it in an office."""

    work: GitRepo
    office: Office
    processes: Processes
    port: int
    home: Path

    async def push(self, text: str, path: str = "shop/dates.py") -> str:
        """Change a file, and have the host tell of the push."""
        self.work.write(path, text)
        commit = await asyncio.to_thread(self.work.commit, "change")
        await asyncio.to_thread(self.work.git, "push", "--quiet", "--force", "origin", "HEAD")
        await posted(f"http://127.0.0.1:{self.port}/webhooks/push", pushes.github(after=commit))
        return commit

    async def ask(self) -> str:
        """Ask, and wait for the answer."""
        question = await self.office.ask()
        await self.office.until(lambda: self.office.is_answered(question))
        return question

    async def kill(self, dying: Fork, gate: Gate) -> None:
        """Kill a process that is held at a call of the platform."""
        await self.office.until(lambda: gate.waiting)
        assert await self.processes.end(dying, signal.SIGKILL) == -signal.SIGKILL

    async def until(self, question: str, is_seen: Callable[[str], bool]) -> str:
        """Wait until the one reply to a question is as expected."""
        await self.office.until(lambda: is_seen("".join(self.office.replies(question))))
        (reply,) = self.office.replies(question)
        return reply


@asynccontextmanager
async def open_team(platform: str, folder: Path, forks: ForkServer) -> AsyncIterator[Team]:
    """Open an office, and the processes of a service for it; none is started."""
    work, directory = GitRepo(folder / "work"), folder / "directory"
    work.write("shop/dates.py", DATES)
    work.commit("first")
    directory.mkdir()
    making = serving(GitHost(folder / "host", password="t0ken", looks_around=False))
    async with making as host, OFFICES[platform]() as office:
        work.git("remote", "add", "origin", str(published(work.root, host, "team/shop.git")))
        (directory / "citebot.toml").write_text(REMOTE.format(url=f"{host.url}/team/shop.git"))
        port = find_free_port()
        variables: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "CITEBOT_HOME": str(folder / "home"),
            "CITEBOT_CONFIG": str(directory),
            "CITEBOT_WEB_PORT": str(port),
            "CITEBOT_METRICS_PORT": "0",
            "CITEBOT_WEBHOOK_SECRET": pushes.SECRET,
            "SHOP_TOKEN": "t0ken",
        }
        processes = Processes(forks, variables, directory, [office])
        try:
            yield Team(work=work, office=office, processes=processes, port=port, home=folder / "home")
        finally:
            await processes.close()


@pytest.mark.parametrize("platform", list(OFFICES))
async def test_an_answer_says_that_its_lines_changed_and_is_given_again(
    platform: str, tmp_path: Path, forks: ForkServer
) -> None:
    """Lines that only moved are nothing to speak of; what is pressed for is written into the same reply."""
    async with open_team(platform, tmp_path, forks) as team:
        pid = await team.processes.start()
        question, first = await team.ask(), team.work.sha()
        await team.push(f"import os\n\n\n{DATES}")
        await team.push(f"import os\n\n\n{DATES}", "shop/more.py")
        changed = await team.push(f"import os\n\n\n{DATES}".replace("parse_date(text)", "parse_date(text, strict)"))

        reply = await team.until(question, lambda text: OUTDATED in text)

        assert changed[:7] in reply.partition(OUTDATED)[2][:20]
        assert "1 of 1 cited places changed" in reply
        await team.office.press(question, "Answer again")
        renewed = await team.until(question, lambda text: "Answered again" in text and OUTDATED not in text)
        assert "parse_date(text, strict)" in renewed
        assert f"{first}...{changed}" in renewed
        assert await team.processes.end(pid) == 128 + signal.SIGTERM


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("platform", list(OFFICES))
async def test_an_edit_during_which_the_process_is_killed_is_shown_by_the_next(
    platform: str, after: bool, tmp_path: Path, forks: ForkServer
) -> None:
    async with open_team(platform, tmp_path, forks) as team:
        dying = await team.processes.start()
        question = await team.ask()
        gate = team.office.hang("*", after=after)
        changed = await team.push(DATES.replace("parse_date(text)", "parse_date(text, strict)"))
        await team.kill(dying, gate)
        async with open_database(team.home / INBOX_FILE) as database:  # nor is its lease waited out
            await database.write("UPDATE living_answers SET edited_at = edited_at - 100")
        team.office.recover()

        second = await team.processes.start()

        reply = await team.until(question, lambda text: OUTDATED in text)
        assert reply.count(OUTDATED) == 1
        assert changed[:7] in reply
        assert await team.processes.end(second) == 128 + signal.SIGTERM


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("platform", list(OFFICES))
async def test_an_earlier_answer_is_given_once_though_the_process_is_killed_over_it(
    platform: str, after: bool, tmp_path: Path, forks: ForkServer
) -> None:
    async with open_team(platform, tmp_path, forks) as team:
        dying = await team.processes.start()
        await team.ask()
        async with open_database(team.home / INBOX_FILE) as database:
            await wait_until(lambda: database.rows("SELECT 1 FROM answer_records"), "the answer that is kept")
        gate = team.office.hang("*", after=after)
        question = await team.office.ask()
        await team.kill(dying, gate)
        team.office.recover()

        second = await team.processes.start()
        team.office.redeliver()

        reply = await team.until(question, lambda text: "still true at" in text)
        assert "def parse_date" in reply
        assert await team.processes.end(second) == 128 + signal.SIGTERM
