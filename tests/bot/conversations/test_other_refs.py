"""Questions at other branches and tags of a real repository, in a chat and from the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from bot.app import TeamApp
from bot.cli.main import run
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.serving.service import make_chat_policy
from bot.settings import RepositoryTable, Settings
from bot.storage.database import open_database
from indexer import UnknownRevision
from tests.bot.chat import message
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.gemini import running_gemini, says
from tests.fakes.platform import ABLE, FakePlatform
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack
from tests.fakes.watched import Unseen
from tests.waiting import expect


@pytest.fixture
def shop(tmp_path: Path) -> GitRepo:
    """A function that is in another file on a branch, and a newer commit on `main`."""
    shop = GitRepo(tmp_path / "shop")
    shop.write("src/pay.py", "def charge_card():\n    return 1\n")
    shop.commit("first")
    shop.branch("release-2.1")
    shop.write("src/cards.py", "\n\ndef charge_card():\n    return 2\n\n\ndef refund():\n    return charge_card()\n")
    shop.remove("src/pay.py")
    shop.commit("move it")
    shop.checkout("main")
    shop.write("src/other.py", "def unrelated():\n    return 3\n")
    shop.commit("second")
    return shop


async def test_an_answer_at_a_branch_cites_its_commit_and_says_so(shop: GitRepo, tmp_path: Path) -> None:
    release = shop.sha("release-2.1")
    tables = (RepositoryTable(path=shop.root, web_url="https://git.example.com/team/shop", branches=("release-*",)),)
    settings = Settings(home=tmp_path / "home", repositories=tables, model="none")
    platform = FakePlatform(SystemClock(), ABLE)
    async with (
        TeamApp.open(settings, tmp_path, Unseen()) as team,
        open_conversations(
            team.agent, team.stock.library, store=open_database(tmp_path / "i.sqlite"),
            policy=make_chat_policy(settings, team), refs=team.stock.library.refs,
        ) as conversations,
        conversations.open(),
        conversations.connect_platform("fake", platform),
    ):  # fmt: skip
        await conversations.receive(message("on release-2.1, where is charge_card defined?"))
        shown = await _wait_for(platform, "release-2.1, commit")
        assert f"https://git.example.com/team/shop/blob/{release}/src/cards.py#L3" in shown
        assert f"Read shop at release-2.1, commit {release[:7]}, not the newest of main" in shown
        await conversations.receive(message("who calls charge_card?", id="2", kind="follow_up"))
        assert "src/cards.py#L8" in await _wait_for(platform, "refund")

        library = team.stock.library
        keeping = asyncio.create_task(library.keep_branches(asyncio.sleep))
        assert (await library.status("shop")).branches == ("release-2.1",)
        assert (await library.status("shop")).commit == shop.sha("main")
        assert (await library.pin("shop", at="release-2.1")).commit.sha == release
        assert (await library.pin(f"shop@{release}")).commit.sha == release
        assert (await library.pin("shop", at="main")).commit.sha == shop.sha("main")
        with pytest.raises(UnknownRevision, match="nearest names are release"):
            await library.pin("shop", at="release-2.2")
        keeping.cancel()
        await asyncio.wait({keeping})


async def _wait_for(platform: FakePlatform, words: str) -> str:
    """Wait until the words are in a settled reply, and return that."""
    async with expect("wait for"):
        while True:
            for each in platform.messages.values():
                shown = f"{each.content.text}\n{each.content.footer}"
                if words in shown and each.content.footer:
                    return shown
            await asyncio.sleep(0.02)


def test_the_command_line_reads_any_ref(
    shop: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(shop.root)

    assert run(["callers", "charge_card", "--at", "release-2.1", "--json"]) == 0
    assert [call["path"] for call in json.loads(capsys.readouterr().out)["callers"]] == ["src/cards.py"]
    assert run(["search", "charge card", "--at", shop.sha("release-2.1")[:8], "--json"]) == 0
    assert "src/cards.py" in {hit["path"] for hit in json.loads(capsys.readouterr().out)["hits"]}
    assert run(["symbols", "charge_card", "--json"]) == 0
    assert [each["path"] for each in json.loads(capsys.readouterr().out)["symbols"]] == ["src/pay.py"]
    assert run(["ask", "where is charge_card defined on release-2.1?"]) == 0
    said = capsys.readouterr()
    assert "src/cards.py:3" in said.out
    assert f"at release-2.1, commit {shop.sha('release-2.1')[:7]}, not the newest of main." in said.err
    assert run(["ask", "where is charge_card defined?", "--at", "relaese-2.1"]) == 1
    assert "has no branch, tag or commit 'relaese-2.1'. The nearest names are release-2.1" in capsys.readouterr().err
    assert run(["ask", "where is it?", "--at", "x", "--repo", "a", "--repo", "b"]) == 2


def test_what_a_pull_request_changes_is_compared_with_what_is_read(
    shop: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.git("update-ref", "refs/pull/12/head", "release-2.1")
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CITEBOT_REPO", str(shop.root))

    assert run(["ask", "what does PR 12 change in src/pay.py?"]) == 0
    said = capsys.readouterr().out
    assert "From `main` [1] to `#12` [2], in `src/pay.py`" in said
    assert "- def charge_card():" in said
    assert run(["ask", "what changed in #13?"]) == 0
    assert "shop has no pull request #13 that can be read here" in capsys.readouterr().out


async def test_in_slack_what_changed_is_linked_at_both_commits_and_the_thread_stays_where_it_was(
    shop: GitRepo, tmp_path: Path
) -> None:
    shop.write("src/pay.py", "def charge_card():\n    return 3\n")
    shop.commit("Charge three")
    tables = (RepositoryTable(path=shop.root, web_url="https://git.example.com/team/shop"),)
    settings = Settings(home=tmp_path / "home", repositories=tables, model="none")
    async with TeamApp.open(settings, tmp_path, Unseen()) as team, FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "inbox.sqlite", policy=make_chat_policy(settings, team))
        world.agent, world.repositories = cast("Any", team.agent), cast("Any", team.stock.library)
        async with world.running():
            asked = await world.mention("what changed between main and release-2.1 in src?")
            said = await _wait_in_slack(world, "release-2.1, commit")
            await world.follow_up("where is charge_card defined?", thread=asked)
            after = await _wait_in_slack(world, "is defined in")

    base, release = shop.sha("release-2.1~1"), shop.sha("release-2.1")
    page = "https://git.example.com/team/shop/blob"
    assert f"{page}/{release}/src/cards.py#L1-L8" in said
    assert f"{page}/{base}/src/pay.py#L1-L2" in said
    assert "The branches diverged at" in said
    assert "src/pay.py" in after
    assert shop.sha("main") in after


async def _wait_in_slack(world: SlackWorld, words: str) -> str:
    async with expect("wait in slack"):
        while not (found := [said for said in world.said() if words in said]):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    return found[0]


def test_a_gemini_is_shown_the_difference_and_cites_both_commits(
    shop: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.git("tag", "v1.0")
    shop.write("src/pay.py", "def charge_card():\n    return 3\n")
    shop.commit("Charge three")
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-a-key")
    monkeypatch.chdir(shop.root)
    with running_gemini() as gemini:
        monkeypatch.setenv("GOOGLE_API_BASE_URL", gemini.url)
        gemini.script = lambda received: says(_compare(received.prompt))
        assert run(["ask", "what changed since v1.0 in charge_card?", "--json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    assert answer["answer"] == "It was one [1] and is three now [2]."
    assert [(one["path"], one["start_line"], one["commit"]) for one in answer["citations"]] == [
        ("src/pay.py", 2, shop.sha("v1.0")),
        ("src/pay.py", 2, shop.sha("main")),
    ]


def _compare(prompt: str) -> str:
    """Answer by the evidence ids of the lines that the prompt has of both sides."""
    shown = [line.partition(" ")[0] for line in prompt.split("\n") if "src/pay.py lines 2-2" in line]
    assert "2:     return 1" in prompt
    assert "2:     return 3" in prompt
    return f"It was one {shown[0]} and is three now {shown[1]}."
