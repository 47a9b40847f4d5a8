"""The measured citations: what the files hold, and that true and wrong ones are told apart as they say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.citations import BEFORE, FORMS, check_turn, read_turns, table

MODULES = {
    "dates.py": "def parse_date(text):\n    return date.fromisoformat(text.strip())\n",
    "mail.py": "def send_mail(address):\n    server.deliver(address, retries=3)\n",
    "stock.py": "def reserve(item):\n    shelf.take(item, amount=1)\n",
}


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    """A folder of clones with one small repository."""
    repository = tmp_path / "git.example.com+shop" / "repo"
    repository.mkdir(parents=True)
    for name, text in MODULES.items():
        (repository / name).write_text(text)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(repository), *arguments], check=True)
    return tmp_path


async def test_true_citations_stay_and_wrong_ones_do_not(tmp_path: Path, mirrors: Path) -> None:
    answer = ["`parse_date` strips the text [E1:1-2].", "Mail is delivered with retries [E2:2]."]
    turn = {
        "question": "how?",
        "exhibits": [f"{name}:1-2 found by search" for name in MODULES],
        "answer": answer,
        "marks": [{"wrong": "E2"}, {"wrong": "E3"}],
    }
    claims = [["Mail is delivered with 3 retries [E2:2].", "Mail is delivered with 9 retries [E2:2]."]]
    twins = {"question": "how?", "exhibits": [*turn["exhibits"], "commit HEAD"], "claims": claims}
    record = {"name": "shop", "url": "https://git.example.com/shop", "commit": "HEAD", "turns": [turn, twins]}
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "shop.json").write_text(json.dumps(record))

    outcomes = [each for read in read_turns(tmp_path / "answers", mirrors) for each in await check_turn(read)]

    assert len(outcomes) == 2 * len(FORMS) * 2 + 3
    assert [outcome.fate == "plain" for outcome in outcomes] == [outcome.kind == "true" for outcome in outcomes]
    assert "100.0 %" in table(outcomes, BEFORE["claims"])
