"""Citebot serving a team as real processes, over the fake platforms: killed anywhere, told to end, wrongly set up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from bot.errors import BackupError
from bot.maintenance.backup import restore_backup, write_backup
from bot.storage.database import INBOX_FILE, open_database
from tests.bot.offices import OFFICES, Office, Processes, in_discord, in_slack
from tests.fakes import pushes
from tests.fakes.citebot import run_citebot
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.forks import Ended, ForkServer
from tests.selection import mark_all_but
from tests.waiting import expect

MAX_CALLS = 12
# One turn without a model, which is saved at its end alone: its nodes, and its journal.
NODES = ("security_gateway", "input_preprocessor", "router", "retrieval", "synthesis", "check_citations")
POINTS = (
    *(f"{node}<" for node in NODES), "conversation_memory<", "conversation_memory|", "end<", "end>", "answer!",
)  # fmt: skip
# A few of them show that another platform continues from there as well.
FEW_POINTS = ("security_gateway<", "retrieval<", "end<", "end>", "answer!")
DEATHS = [
    ("slack", "retrieval<"),
    *(
        pytest.param(platform, point, marks=pytest.mark.exhaustive)
        for platform, points in {"slack": POINTS, "discord": FEW_POINTS}.items()
        for point in points
        if (platform, point) != ("slack", "retrieval<")
    ),
]

REMOTE = """
[[repositories]]
url = "{url}"
name = "shop"
token_variable = "SHOP_TOKEN"
web_url = "https://git.example/team/shop"
"""

Staffed = Callable[..., AbstractAsyncContextManager[Processes]]

on_all_platforms = pytest.mark.parametrize("office", mark_all_but(["slack"], [*OFFICES]), indirect=True)


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


@pytest.fixture
def settings(home: Path) -> Mapping[str, str]:
    """All tests ask the same question of one data folder, each time to be answered anew."""
    config = home.with_name("citebot.toml")
    config.write_text("[living]\nreuse = false\n")
    return {
        "PATH": os.environ["PATH"],
        "CITEBOT_HOME": str(home),
        "CITEBOT_CONFIG": str(config),
        "CITEBOT_QUESTIONS_PER_MINUTE": "1000",
        "CITEBOT_WEB_PORT": "0",
        "CITEBOT_METRICS_PORT": "0",
    }


@pytest.fixture
def staffed(settings: Mapping[str, str], repository: GitRepo, forks: ForkServer) -> Staffed:
    """What makes the processes that serve some offices until its context ends."""

    @asynccontextmanager
    async def made(*offices: Office) -> AsyncIterator[Processes]:
        processes = Processes(forks, settings, repository.root, offices)
        try:
            yield processes
        finally:
            await processes.close()

    return made


@pytest_asyncio.fixture
async def office(request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    async with OFFICES[request.param]() as made:
        yield made


@pytest_asyncio.fixture
async def processes(office: Office, staffed: Staffed) -> AsyncIterator[Processes]:
    async with staffed(office) as made:
        yield made


async def answered(office: Office, question: str) -> None:
    """Wait until a message is whole; there is only one, and it says what is asked for."""
    await office.until(lambda: office.is_answered(question))
    (text,) = office.replies(question)
    assert "shop/dates.py" in text


@pytest.mark.parametrize("office", OFFICES, indirect=True)
async def test_a_question_is_answered_and_sigterm_ends_the_process(office: Office, processes: Processes) -> None:
    pid = await processes.start()
    await answered(office, await office.ask())

    assert await processes.end(pid) == 128 + signal.SIGTERM


@pytest.mark.parametrize(("office", "point"), DEATHS, indirect=["office"])
async def test_a_turn_killed_at_any_node_is_finished_in_the_same_message(
    office: Office, processes: Processes, point: str
) -> None:
    dying = await processes.start(point)
    question = await office.ask()
    assert await processes.end(dying, 0) == -signal.SIGKILL

    second = await processes.start()

    await answered(office, question)
    assert await processes.end(second) == 128 + signal.SIGTERM


@on_all_platforms
async def test_the_lease_of_a_process_that_was_killed_is_not_waited_out(
    office: Office, processes: Processes, home: Path
) -> None:
    """Nor where its parent has not noticed yet that it is dead, as below a shell that waits for something else."""
    dying = await processes.start()
    gate = office.hang(office.opening, after=True)
    question = await office.ask()
    await office.until(lambda: gate.waiting)
    dying.send(signal.SIGKILL)
    await office.until(lambda: not office.is_connected)
    async with open_database(home / INBOX_FILE) as database:
        leases = "UPDATE inbox SET lease_until = lease_until + 3000 WHERE state IN ('claimed', 'running')"
        assert await database.write(leases) == 1
    office.recover()

    second = await processes.start()

    await answered(office, question)
    assert await processes.end(second) == 128 + signal.SIGTERM


@on_all_platforms
async def test_a_question_that_kills_two_processes_is_put_aside_by_the_third(
    office: Office, processes: Processes
) -> None:
    dying = await processes.start("retrieval<")
    question = await office.ask()
    assert await processes.end(dying, 0) == -signal.SIGKILL
    dying = await processes.start("retrieval<", heard=[])
    assert await processes.end(dying, 0) == -signal.SIGKILL

    third = await processes.start("retrieval<")

    await office.until(lambda: any("I could not finish this one" in text for text in office.replies(question)))
    assert len(office.replies(question)) == 1
    assert await processes.end(third) == 128 + signal.SIGTERM


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("platform", OFFICES)
async def test_a_turn_killed_at_any_call_is_finished_in_the_same_message(
    staffed: Staffed, platform: str, after: bool
) -> None:
    """Kills at the first call of a turn, then at the second, and so on: before it takes effect, or after."""
    killed: set[str] = set()
    for number in range(MAX_CALLS):
        async with OFFICES[platform]() as office, staffed(office) as processes:
            if not (calls := await killed_at(number, office, processes, after=after)):
                # Where calls are made side by side, their order is not always the same.
                assert killed
                assert number >= len(office.calls)
                return
            killed |= calls
    pytest.fail(f"the turn has more than {MAX_CALLS} calls: {killed}")


async def killed_at(number: int, office: Office, processes: Processes, *, after: bool) -> frozenset[str]:
    """Kill a process at a call, and see another finish its turn; return the name of the call, if there was one."""
    dying = await processes.start()
    gate = office.hang("*", skip=number, after=after)
    question = await office.ask()
    await office.until(lambda: gate.waiting or office.is_answered(question))
    if not gate.waiting:
        return frozenset()
    calls = office.held_calls
    assert await processes.end(dying, signal.SIGKILL) == -signal.SIGKILL
    office.recover()

    second = await processes.start()
    office.redeliver()

    await answered(office, question)
    assert await processes.end(second) == 128 + signal.SIGTERM
    return calls


@on_all_platforms
async def test_a_turn_under_way_is_finished_before_sigterm_ends_the_process(
    office: Office, processes: Processes
) -> None:
    pid = await processes.start()
    gate = office.hang(office.opening)
    question = await office.ask()
    await office.until(lambda: gate.waiting)
    ending = asyncio.create_task(processes.end(pid))
    await office.until(lambda: not office.is_connected)
    gate.release()

    assert await ending == 128 + signal.SIGTERM
    assert office.is_answered(question)
    assert len(office.replies(question)) == 1


async def test_one_process_answers_on_two_platforms_at_once(staffed: Staffed) -> None:
    async with in_slack() as slack, in_discord() as discord, staffed(slack, discord) as processes:
        offices: list[Office] = [slack, discord]
        dying = await processes.start()
        gates = [office.hang(office.opening, after=True) for office in offices]
        questions = [await office.ask() for office in offices]
        await slack.until(lambda: gates[0].waiting)
        await discord.until(lambda: gates[1].waiting)
        await processes.end(dying, signal.SIGKILL)
        for office in offices:
            office.recover()

        second = await processes.start()

        for office, question in zip(offices, questions, strict=True):
            await answered(office, question)
        assert await processes.end(second) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"SLACK_APP_TOKEN": "xapp-1"}, "SLACK_APP_TOKEN is set, but SLACK_BOT_TOKEN is not"),
        ({"SLACK_SIGNING_SECRET": "0123"}, "SLACK_SIGNING_SECRET is set, but SLACK_BOT_TOKEN is not"),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "Socket Mode needs SLACK_APP_TOKEN"),
        ({"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_MODE": "http"}, "HTTP mode needs SLACK_SIGNING_SECRET"),
    ],
)
def test_a_missing_token_is_one_sentence(
    forks: ForkServer, repository: GitRepo, tmp_path: Path, variables: Mapping[str, str], sentence: str
) -> None:
    own = {"PATH": os.environ["PATH"], "CITEBOT_HOME": str(tmp_path), **variables}

    assert sentence in refusal(forks.run(run_citebot, "serve", "--repo", str(repository.root), env=own))


async def test_a_refused_discord_token_is_one_sentence(
    forks: ForkServer, settings: Mapping[str, str], repository: GitRepo
) -> None:
    async with in_discord() as office:
        variables = {**settings, **office.variables, "DISCORD_TOKEN": "another.discord.token"}
        done = await asyncio.to_thread(forks.run, run_citebot, "serve", "--repo", str(repository.root), env=variables)

    assert "choose Bot > Reset Token, and set DISCORD_TOKEN" in refusal(done)
    assert "another.discord.token" not in done.err


def refusal(done: Ended) -> str:
    """The sentence of a process that ended for it; fails for any other end."""
    assert done.code == 1
    (sentence,) = done.err.splitlines()
    return sentence


async def test_a_push_to_a_host_is_answered_from_soon_after_its_webhook(
    settings: Mapping[str, str], repository: GitRepo, tmp_path: Path, forks: ForkServer
) -> None:
    work, directory = GitRepo(tmp_path / "work"), tmp_path / "directory"
    work.write("shop/dates.py", (repository.root / "shop/dates.py").read_bytes())
    work.commit("first")
    directory.mkdir()
    async with serving(GitHost(tmp_path / "host", password="t0ken", looks_around=False)) as host, in_slack() as office:
        work.git("remote", "add", "origin", str(published(work.root, host, "team/shop.git")))
        (directory / "citebot.toml").write_text(REMOTE.format(url=f"{host.url}/team/shop.git"))
        port = find_free_port()
        own = {"CITEBOT_HOME": str(tmp_path / "home"), "CITEBOT_WEB_PORT": str(port), "CITEBOT_CONFIG": str(directory)}
        secrets = {"CITEBOT_WEBHOOK_SECRET": pushes.SECRET, "SHOP_TOKEN": "t0ken"}
        processes = Processes(forks, {**settings, **own, **secrets}, directory, [office])
        try:
            pid = await processes.start()
            assert cited(first := work.sha(), "shop/dates.py") in await told(office)
            work.rename("shop/dates.py", "shop/calendar.py")
            await asyncio.to_thread(work.commit, "second")
            await asyncio.to_thread(work.git, "push", "--quiet", "origin", "HEAD")
            await posted(f"http://127.0.0.1:{port}/webhooks/push", pushes.github(after=work.sha()))

            async with expect("cited(work.sha(), 'shop/calendar.py') in (said := tol..."):
                while cited(work.sha(), "shop/calendar.py") not in (said := await told(office)):
                    assert cited(first, "shop/dates.py") in said

            assert await processes.end(pid) == 128 + signal.SIGTERM
        finally:
            await processes.close()


async def told(office: Office) -> str:
    """Ask, and return the answer."""
    question = await office.ask()
    await office.until(lambda: office.is_answered(question))
    (text,) = office.replies(question)
    return text


def cited(commit: str, path: str) -> str:
    return f"https://git.example/team/shop/blob/{commit}/{path}"


async def posted(url: str, delivery: pushes.Delivery) -> None:
    """Post a webhook, as soon as somebody listens."""
    async with expect("posted"), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.post(url, data=delivery.body, headers=delivery.headers) as response:
                    assert response.status == 202
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("office", ["slack"], indirect=True)
async def test_a_backup_beside_a_serving_process_holds_its_answers(
    office: Office, processes: Processes, home: Path, tmp_path: Path
) -> None:
    pid = await processes.start()
    await answered(office, await office.ask())
    saved, empty = tmp_path / "saved.tar.gz", tmp_path / "restored"

    await asyncio.to_thread(write_backup, home, saved, now=0.0, indexes=True, force=False)
    with pytest.raises(BackupError, match="Another citebot is using"):
        await asyncio.to_thread(restore_backup, saved, home, force=True)
    await answered(office, await office.ask())  # it continues

    assert await processes.end(pid) == 128 + signal.SIGTERM
    await asyncio.to_thread(restore_backup, saved, empty, force=False)
    async with open_database(empty / INBOX_FILE) as database:
        (newest,) = await database.rows("SELECT state, handles <> '[]' FROM inbox ORDER BY id DESC LIMIT 1")
    assert newest in {("running", 1), ("settled", 1)}  # answered, and perhaps not noted yet
