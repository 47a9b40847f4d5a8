"""Answers that are derived again from their records: `citebot replay`."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.app import TeamApp
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.serving.service import make_chat_policy
from bot.settings import Settings
from bot.storage.database import INBOX_FILE, open_database
from tests.bot.chat import message
from tests.fakes.citebot import Citebot
from tests.fakes.gemini import running_gemini, says
from tests.fakes.platform import ABLE, FakePlatform
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen
from tests.waiting import expect

PAY = "def charge_card(amount):\n    return amount\n\n\ndef refund(amount):\n    return charge_card(-amount)\n"


@pytest.fixture
def till(tmp_path: Path) -> GitRepo:
    till = GitRepo(tmp_path / "till")
    till.write("src/pay.py", PAY)
    for number in range(12):
        till.write(
            f"src/fee{number}.py", f"def add_fee{number}():\n    # a card that is charged abroad\n    return {number}\n"
        )
    till.commit("first")
    return till


@pytest.fixture
def may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, till: GitRepo) -> None:
    """An account that may read what was asked."""
    account = pwd.getpwuid(os.geteuid()).pw_name
    access = f'[access]\nquestions = ["terminal:{account}"]\n'
    (tmp_path / "citebot.toml").write_text(f'{access}\n[[repositories]]\npath = "{till.root}"\n')
    monkeypatch.setenv("CITEBOT_CONFIG", str(tmp_path / "citebot.toml"))


async def ask(tmp_path: Path, questions: Sequence[str], more: Mapping[str, str]) -> None:
    """Ask questions in one thread of a team that is served, one after the other."""
    own = {"CITEBOT_HOME": str(tmp_path / "home"), "CITEBOT_CONFIG": "citebot.toml"}
    settings = Settings.load({**own, **more}, tmp_path)
    platform = FakePlatform(SystemClock(), ABLE)
    async with (
        TeamApp.open(settings, tmp_path, Unseen()) as team,
        open_conversations(
            team.agent, team.stock.library, store=open_database(tmp_path / "home" / INBOX_FILE),
            policy=make_chat_policy(settings, team), refs=team.stock.library.refs,
        ) as conversations,
        conversations.open(),
        conversations.connect_platform("fake", platform),
    ):  # fmt: skip
        for number, question in enumerate(questions, 1):
            asked = message(question, id=str(number))
            await conversations.receive(asked if number == 1 else replace(asked, kind="follow_up"))
            async with expect("an answer"):
                while sum(bool(one.content.footer) for one in platform.messages.values()) < number:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)


def serve(tmp_path: Path, *questions: str, **more: str) -> None:
    asyncio.run(ask(tmp_path, questions, {"CITEBOT_MODEL": "none", **more}))


def list_runs(citebot: Citebot) -> list[dict[str, Any]]:
    """The answers that can be derived again, the oldest first."""
    return list(reversed(json.loads(citebot("replay", "--json").out)["answers"]))


def test_only_an_account_that_may_reads_what_was_asked(citebot: Citebot) -> None:
    assert "You aren't allowed to read the questions." in citebot("replay").complaint
    assert "You aren't allowed to read the questions." in citebot("replay", "x").complaint


@pytest.mark.usefixtures("may")
def test_an_answer_is_derived_again_at_its_commit_whatever_was_pushed(
    citebot: Citebot, tmp_path: Path, till: GitRepo
) -> None:
    assert "No answers are stored yet" in citebot("replay").err
    serve(tmp_path, "who calls charge_card?", "and where is it defined?", "how is a card charged?")
    till.write("src/pay.py", "def charge():\n    return 0\n")
    till.commit("another shop")

    runs = list_runs(citebot)
    assert [run["question"] for run in runs] == [
        "who calls charge_card?",
        "and where is it defined?",
        "how is a card charged?",
    ]
    for run in runs:
        done = citebot("replay", run["run"], "--json")
        assert (done.code, done.answer["same_answer"], done.answer["same_evidence"]) == (0, True, True), done
        assert done.answer["version_changes"] == {}
    shown = citebot("replay", runs[2]["run"])
    assert "The answer is the same, byte for byte." in shown.out
    assert "src/fee" in shown.out.partition("Evidence that was read but not cited:")[2]
    assert "is kept. `citebot replay` lists the newest." in citebot("replay", "0123").complaint


@pytest.mark.usefixtures("may")
def test_what_differs_is_named(citebot: Citebot, tmp_path: Path) -> None:
    serve(tmp_path, "who calls charge_card?")
    (run,) = list_runs(citebot)
    with closing(sqlite3.connect(tmp_path / "home" / INBOX_FILE)) as db:
        ((text,),) = db.execute("SELECT record FROM answer_records").fetchall()
        record = json.loads(text)
        record["text"] = record["text"].replace("refund", "repay")
        record["versions"]["index format"] = "1"
        db.execute("UPDATE answer_records SET record = ?", (json.dumps(record),))
        db.commit()

    shown = citebot("replay", run["run"])

    assert shown.code == 1
    assert "The answer differs:" in shown.out
    assert any(line.startswith("-") and "repay" in line for line in shown.out.splitlines())
    assert "Changed since: index format 1 is now " in shown.out


@pytest.mark.usefixtures("may")
def test_the_recorded_replies_of_a_model_are_used_and_no_model_is_asked(citebot: Citebot, tmp_path: Path) -> None:
    with running_gemini() as gemini:
        gemini.script = lambda _: says("`refund` calls it [E1].")
        address = {"GOOGLE_API_KEY": "AIza-a-key", "GOOGLE_API_BASE_URL": gemini.url}
        asyncio.run(ask(tmp_path, ["who calls charge_card?"], address))
    (run,) = list_runs(citebot)

    done = citebot("replay", run["run"], "--json")

    assert "`refund` calls it" in done.answer["answer"]
    assert (done.answer["same_answer"], done.answer["same_evidence"], done.answer["other_prompts"]) == (
        True, True, False,
    )  # fmt: skip
    shown = citebot("replay", run["run"]).out
    assert "recorded replies of google_genai:gemini-flash-latest, to the same prompts." in shown
    assert "configured masks 1 is now 0" in shown  # the key, which this process was not given
