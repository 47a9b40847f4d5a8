"""Ratings, and how the answers were found, as `citebot feedback` exports them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bot.cli.main import run
from bot.cli.upkeep import export_feedback
from bot.settings import Settings
from bot.storage.database import INBOX_FILE, open_database
from bot.storage.turn_records import TurnRecord, TurnRecordStore
from tests.fakes.clock import FakeClock

RECORD = TurnRecord(
    repository="demo", commit="0123456789abcdef", route="fast", model="google_genai:some", seconds=1.23456,
    files=("src/session.py",), searched=("send",),
)  # fmt: skip
NOW = 10 * 86_400.0


async def rated(home: Path) -> Path:
    """Three answers: one liked long ago, one disliked, and one that was forgotten after it was liked."""
    path = home / INBOX_FILE
    async with open_database(path) as database:
        for run_id, opinion, at in (("a", "good", 0.0), ("b", "bad", NOW - 60), ("c", "good", NOW)):
            records = TurnRecordStore(database, FakeClock(at))
            await records.keep(run_id, f"conversation {run_id}", RECORD)
            await records.rate(run_id, "U1ANN", "good" if opinion == "good" else "bad")
        await records.forget("conversation c")
    return path


async def exported(path: Path, days: int | None = None) -> list[dict[str, Any]]:
    told = await export_feedback(Settings(home=path.parent), FakeClock(NOW), days=days, as_json=True)
    rows = json.loads(told.output)["feedback"]
    assert isinstance(rows, list)
    return rows


async def test_a_rating_comes_with_how_the_answer_came_about(tmp_path: Path) -> None:
    assert (await exported(await rated(tmp_path)))[0] == {
        "rating": "good",
        "at": "1970-01-01T00:00:00+00:00",
        "turn": "a",
        "repository": "demo",
        "commit": "0123456789abcdef",
        "route": "fast",
        "model": "google_genai:some",
        "seconds": 1.235,
        "searched": ["send"],
        "files": ["src/session.py"],
    }


async def test_who_rated_is_not_told(tmp_path: Path) -> None:
    assert "U1ANN" not in json.dumps(await exported(await rated(tmp_path)))


async def test_ratings_of_the_last_days_come_oldest_first(tmp_path: Path) -> None:
    path = await rated(tmp_path)

    assert [row["turn"] for row in await exported(path)] == ["a", "b", "c"]
    assert [row["turn"] for row in await exported(path, days=1)] == ["b", "c"]


async def test_of_a_forgotten_turn_only_the_rating_is_left(tmp_path: Path) -> None:
    row = (await exported(await rated(tmp_path)))[2]

    assert row.pop("rating") == "good"
    assert (row.pop("at"), row.pop("turn")) == ("1970-01-11T00:00:00+00:00", "c")
    assert set(row.values()) == {None}


async def test_ratings_are_lines_for_people(tmp_path: Path) -> None:
    await rated(tmp_path)
    told = await export_feedback(Settings(home=tmp_path), FakeClock(NOW), days=None, as_json=False)

    lines = told.output.splitlines()
    assert told.ok
    assert lines[0].endswith("  good  demo at 0123456  fast  google_genai:some")
    assert lines[1].split()[2] == "bad"
    assert lines[2].endswith("  good  (forgotten)")


async def test_a_rating_that_was_changed_counts_once(tmp_path: Path) -> None:
    path = await rated(tmp_path)
    async with open_database(path) as database:
        await TurnRecordStore(database, FakeClock(NOW)).rate("a", "U1ANN", "bad")

    assert [row["rating"] for row in await exported(path) if row["turn"] == "a"] == ["bad"]


def test_the_command_reads_the_data_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asyncio.run(rated(tmp_path / "home"))

    assert run(["feedback", "--json"]) == 0
    assert [row["turn"] for row in json.loads(capsys.readouterr().out)["feedback"]] == ["a", "b", "c"]
    assert run(["feedback", "--since", "7"]) == 1  # those were given in 1970
    assert capsys.readouterr().err == "Nobody has rated an answer in the last 7 days.\n"


def test_without_ratings_nothing_is_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["feedback", "--json"]) == 1

    captured = capsys.readouterr()
    assert (json.loads(captured.out), captured.err) == ({"feedback": []}, "Nobody has rated an answer yet.\n")
    assert not (tmp_path / "home" / INBOX_FILE).exists()


def test_a_damaged_database_is_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / INBOX_FILE).write_text("no database at all, whatever its name says")

    assert run(["feedback"]) == 1
    assert "is damaged. Move it away" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["0", "-1", "x", "nan", "99999999999"])
def test_days_that_are_none_are_wrong_usage(days: str) -> None:
    assert run(["feedback", "--since", days]) == 2
