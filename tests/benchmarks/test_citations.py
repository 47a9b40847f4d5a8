"""The measured citations: what the files hold, and that true and wrong ones are told apart as they say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.citations import ANSWERS, FORMS, check_turn, read_turns, table
from benchmarks.keyless import HELD_OUT

FILES = sorted(ANSWERS.rglob("*.json"))
MODULES = {
    "dates.py": "def parse_date(text):\n    return date.fromisoformat(text.strip())\n",
    "mail.py": "def send_mail(address):\n    server.deliver(address, retries=3)\n",
    "stock.py": "def reserve(item):\n    shelf.take(item, amount=1)\n",
}


def load(folder: Path) -> list[dict[str, Any]]:
    return [turn for file in folder.glob("*.json") for turn in json.loads(file.read_text(encoding="utf-8"))["turns"]]


def test_there_are_two_hundred_citations_about_half_of_which_are_held_out() -> None:
    tuned, held_out = (sum(len(turn["marks"]) for turn in load(each)) for each in (ANSWERS, ANSWERS / HELD_OUT))

    assert tuned + held_out >= 200
    assert 0.4 <= held_out / (tuned + held_out) <= 0.6


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_citation_lies_in_what_was_shown_and_the_wrong_one_elsewhere(file: Path) -> None:
    for turn in json.loads(file.read_text(encoding="utf-8"))["turns"]:
        places = [re.match(r"(\S+):(\d+)-(\d+)", exhibit) for exhibit in turn["exhibits"]]
        cited = re.findall(r"\[E(\d+):(\d+)(?:-(\d+))?\]", "\n".join(turn["answer"]))
        assert len(cited) == len(turn["marks"])
        for (number, start, end), mark in zip(cited, turn["marks"], strict=True):
            shown = places[int(number) - 1]
            assert shown is not None
            assert int(shown[2]) <= int(start) <= int(end or start) <= int(shown[3])
            assert mark["wrong"] not in {f"E{number}", *mark.get("also", ())}
            assert 1 <= int(mark["wrong"][1:]) <= len(places)


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
    record = {"name": "shop", "url": "https://git.example.com/shop", "commit": "HEAD", "turns": [turn]}
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "shop.json").write_text(json.dumps(record))

    (read,) = read_turns(tmp_path / "answers", mirrors)
    outcomes = await check_turn(read)

    assert len(outcomes) == 2 * len(FORMS) * 2
    assert [outcome.is_kept for outcome in outcomes] == [outcome.is_true for outcome in outcomes]
    assert "100.0 %" in table(outcomes)
