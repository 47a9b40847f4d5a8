"""A secret that somebody pastes is masked before anything is stored: no file of the data folder ever holds it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from bot.adapters.terminal.prompt import PromptedInput
from bot.app import make_redactor
from bot.messages import ButtonPress, ThreadMessage
from bot.settings import Settings
from tests.bot.contract import until
from tests.bot.offices import DiscordOffice, Processes, SlackOffice, in_discord, in_slack
from tests.bot.worlds import FakeWorld
from tests.fakes.repositories import GitRepo
from tests.forks import ForkServer
from tests.waiting import wait_for

QUESTION = "where is parse_date defined?"
# Two that people chose, and two that were drawn by lot, once.
ASKED, EDITED, QUOTED, BY_COMMAND = "Winter2026!", "m9Qe6JxUz1cHf8Ls", "Admin_2024!", "h2RuC8pMx4EjS6qT"
RAW = (ASKED, EDITED, QUOTED, BY_COMMAND)


@dataclass(kw_only=True)
class Team:
    """People in Slack and in Discord, a folder of data, and processes that serve them from it."""

    slack: SlackOffice
    discord: DiscordOffice
    processes: Processes
    home: Path

    def stored(self) -> list[str]:
        """Name the files that hold one of the secrets, the logs of the databases among them."""
        files = [path for path in self.home.rglob("*") if path.is_file()]
        assert any(path.name.endswith("-wal") for path in files), "nothing is open"
        assert any(b"parse_date" in path.read_bytes() for path in files), "nothing was stored"
        return [path.name for path in files for raw in RAW if raw.encode() in path.read_bytes()]


def contents(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest_asyncio.fixture
async def team(repository: GitRepo, forks: ForkServer, tmp_path: Path) -> AsyncIterator[Team]:
    async with in_slack() as slack, in_discord() as discord:
        variables = {"PATH": os.environ["PATH"], "CITEBOT_HOME": str(tmp_path), "CITEBOT_WEB_PORT": "0"}
        processes = Processes(forks, variables, repository.root, [slack, discord])
        try:
            yield Team(slack=slack, discord=discord, processes=processes, home=tmp_path)
        finally:
            await processes.close()


async def test_no_file_holds_what_was_pasted_in_slack(team: Team) -> None:
    await team.processes.start()
    office, fake = team.slack, team.slack.fake
    thread = await fake.message(office._channel, office._ann, f"the staging password is {QUOTED}")
    await fake.mention(office._channel, office._ann, f"{QUESTION} DB_PASSWORD={ASKED}", thread)
    await office.until(lambda: office.is_answered(thread))

    asked = await fake.mention(office._channel, office._ann, QUESTION)
    await office.until(lambda: office.is_answered(asked))
    await fake.edit(office._channel, asked, f"<@{fake.bot_user}> {QUESTION} with api_key={EDITED}")
    await office.until(lambda: fake.answers(office._channel, asked)[0].edits)
    await office.until(lambda: office.is_answered(asked))
    await fake.slash("/citebot", f"{QUESTION} token: {BY_COMMAND}", channel=office._channel, user=office._ann)
    await office.until(lambda: "shop/dates.py" in str(fake.ephemeral(office._channel, office._ann)))

    assert team.stored() == []


async def test_no_file_holds_what_was_pasted_in_discord(team: Team) -> None:
    await team.processes.start()
    office, fake = team.discord, team.discord.fake
    asked = fake.mention(office._channel, office._ann, f"{QUESTION} DB_PASSWORD={ASKED}")
    await office.until(lambda: office.is_answered(asked))
    fake.edit(asked, f"<@{fake.world.bot.id}> {QUESTION} with api_key={EDITED}")
    fake.message(asked, office._ann, f"and who calls it? the password is {QUOTED}")
    await office.until(lambda: len(fake.answers(asked)) > 1)
    using = fake.slash(office._channel, office._ann, "ask", question=f"{QUESTION} token: {BY_COMMAND}")
    await office.until(lambda: any("shop/dates.py" in seen.text for seen in using.responses))

    assert team.stored() == []


@pytest.mark.parametrize("point", ["pin<", "router<", "end<"])
async def test_a_crash_leaves_nothing_of_a_pasted_secret_behind(team: Team, point: str) -> None:
    pid = await team.processes.start(point)
    office, fake = team.slack, team.slack.fake

    await fake.mention(office._channel, office._ann, f"{QUESTION} DB_PASSWORD={ASKED}")

    assert await team.processes.end(pid, 0) == -signal.SIGKILL
    assert team.stored() == []


async def test_a_pasted_secret_is_masked_before_the_inbox(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path / "inbox.sqlite")
    world.policy = type(world.policy)(hosts=world.policy.hosts, mask=make_redactor(Settings.load({}, tmp_path)))
    world.agent.gate = asyncio.Event()
    await world.begin()
    message = await world.mention(f"where is send? password={ASKED}")
    await world.agent.begun.acquire()

    entry = await world.conversations._deps.inbox.find(world.written[message].key)

    assert entry is not None
    assert entry.message.text == "where is send? password=[REDACTED:secret]"
    world.agent.gate.set()
    await world.end()


async def test_what_others_pasted_in_a_thread_and_call_themselves_is_masked_before_it_is_asked(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path / "inbox.sqlite")
    world.policy = type(world.policy)(hosts=world.policy.hosts, mask=make_redactor(Settings.load({}, tmp_path)))
    world.platform._threads = [
        ThreadMessage(id="0.1", author=f"token={EDITED}", text=f"It fails with password={QUOTED} since May."),
    ]
    await world.begin()
    await world.mention("why is that?", thread="0")
    await wait_for(world.agent.begun.acquire(), "world.agent.begun")

    ((question, _, _),) = world.agent.asked
    assert "It fails with password=[REDACTED:secret] since May." in question
    assert EDITED not in question
    assert QUOTED not in question
    await world.end()


async def test_nothing_of_the_value_of_a_button_is_stored(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path / "inbox.sqlite")
    await world.begin()
    await world.mention("where is send?")
    await wait_for(world.agent.begun.acquire(), "world.agent.begun")
    await until(world, lambda said: len(said) == 1 and "Answer to" in said[0])
    newest = list(world.platform.messages.values())[-1].handle
    for action in ("approve", "choose", "good", "share", "stop"):
        await world.conversations.handle_press(
            ButtonPress(handle=newest, action=action, author="ann", value=f"password={ASKED}")
        )

    files = contents(tmp_path)
    assert any(b"where is send?" in data for data in files.values())
    assert [name for name, data in files.items() if ASKED.encode() in data] == []
    await world.end()


async def test_the_history_of_the_prompt_keeps_no_secret(tmp_path: Path) -> None:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        lines = PromptedInput(tmp_path / "history", lambda _: None, make_redactor(Settings.load({}, tmp_path)))
        keys.send_text(f"why is password={ASKED} refused?\r")

        typed = await wait_for(lines.read(), "lines.read()")

    assert typed == f"why is password={ASKED} refused?"
    assert "why is password=[REDACTED:secret] refused?" in (tmp_path / "history").read_text(encoding="utf-8")
    assert ASKED not in (tmp_path / "history").read_text(encoding="utf-8")
