"""Questions that could not be answered, as `citebot gaps` reports them."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot.storage.database import INBOX_FILE, open_database
from bot.storage.turn_records import TurnRecord, TurnRecordStore
from tests.fakes.citebot import Citebot
from tests.fakes.clock import FakeClock
from tests.fakes.repositories import GitRepo

DAY = 86_400.0
GAP = TurnRecord(
    repository="till", commit="0" * 40, route="broad", model=None, seconds=0.1, files=("till/pay.py",), found=False,
    question="how do refunds work?",
)  # fmt: skip


def keep(home: Path) -> None:
    """Keep five gaps, of which one is too old, an answer that nobody disliked, and a greeting."""
    turns = {
        "nearest": (1, GAP),
        "nothing": (2, replace(GAP, files=(), question="")),
        "broken": (3, replace(GAP, route="failed", repository="other")),
        "disliked": (4, replace(GAP, found=True)),
        "liked": (5, replace(GAP, found=True)),
        "hello": (6, replace(GAP, route="out_of_scope")),
        "old": (40, GAP),
    }

    async def write() -> None:
        async with open_database(home / INBOX_FILE) as database:
            for run_id, (days, record) in turns.items():
                records = TurnRecordStore(database, FakeClock(time.time() - days * DAY), mask_question=str)
                await records.keep(run_id, f"conversation {run_id}", record)
                await records.rate(run_id, "U1", "bad" if run_id == "disliked" else "good")

    asyncio.run(write())


@pytest.fixture
def may(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A repository with owners, and an account that may see what was asked about it."""
    repository = GitRepo(home.parent / "till")
    repository.write("till/pay.py", "def pay():\n    return 1\n")
    repository.write("CODEOWNERS", "till/ @acme/payments\n")
    repository.commit()
    account = pwd.getpwuid(os.geteuid()).pw_name
    text = f'[access]\nquestions = ["terminal:{account}"]\n\n[[repositories]]\npath = "{repository.root}"\n'
    (home.parent / "citebot.toml").write_text(text)
    monkeypatch.setenv("CITEBOT_CONFIG", "citebot.toml")


def test_only_an_account_that_may_reads_what_was_asked(citebot: Citebot) -> None:
    assert "You aren't allowed to read the questions." in citebot("gaps").complaint


@pytest.mark.usefixtures("may")
def test_each_gap_has_its_reason_and_the_owners_of_the_nearest_place(
    citebot: Citebot, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_KEEP_QUESTION_DAYS", "30")
    keep(home)
    citebot("index", str(home.parent / "till"))
    done = citebot("gaps")

    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[0] == "4 of 5 questions of the last 30 days were not answered, or not well."
    assert lines[2] == "till: 3"
    assert lines[3].endswith("no place clearly answers it: how do refunds work?")
    assert lines[4].strip() == "till/pay.py  owned by @acme/payments"
    assert lines[5].endswith("nothing was found")
    assert lines[6].endswith("its answer was rated bad: how do refunds work?")
    assert lines[9:11] == ["other: 1", lines[10]]
    assert "the run failed" in lines[10]


@pytest.mark.usefixtures("may")
def test_programs_get_them_and_what_is_missing_is_said(citebot: Citebot, home: Path) -> None:
    keep(home)
    done = citebot("gaps", "--days", "1", "--json")

    assert json.loads(done.out) == {"days": 1, "asked": 0, "gaps": []}
    told = json.loads(citebot("gaps", "--json").out)
    assert [gap["turn"] for gap in told["gaps"]] == ["nearest", "nothing", "broken", "disliked"]
    assert "`keep_question_days` is 0" in citebot("gaps").err
