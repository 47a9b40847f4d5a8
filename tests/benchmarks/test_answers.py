"""The benchmark of what a model is shown and answers, over a tiny repository, from questions to tables."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.answers import measure_coverage, parse_arguments, run
from benchmarks.shown_lines import ShownLine, find_shown_lines
from benchmarks.truths import PlacedQuestion
from tests.fakes.repositories import GitRepo

pytestmark = pytest.mark.exhaustive

URL = "https://host.example/owner/pumps"
FILES = {
    "pumps/prime.py": "def prime_pump(pressure):\n    return pressure * 2\n",
    "pumps/valve.py": "def open_valve(pump):\n    return pump.flow\n",
}


@pytest.fixture
def mirror(tmp_path: Path) -> GitRepo:
    """A mirror with one commit."""
    repository = GitRepo(tmp_path / "mirrors" / "owner+pumps" / "repo")
    for path, text in FILES.items():
        repository.write(path, text)
    repository.commit("Add the pump")
    return repository


def write_questions(tmp_path: Path, commit: str) -> argparse.Namespace:
    """Write a question that one file answers, and return the command line that asks it."""
    folder = tmp_path / "questions"
    folder.mkdir()
    truth = {"places": ["pumps/prime.py:1-2"]}
    questions = [{"kind": "how", "question": "how does the pump get its pressure?", "truth": truth}]
    record = {"name": "pumps", "url": URL, "commit": commit, "questions": questions}
    (folder / "pumps.json").write_text(json.dumps(record), encoding="utf-8")
    words = ["--mirrors", str(tmp_path / "mirrors"), "--data", str(tmp_path / "data"), "--each"]
    return parse_arguments([*words, "--questions", str(folder), "--answerers", "still", "one-round"])


async def test_each_answerer_is_asked_and_what_it_was_shown_is_measured(
    tmp_path: Path, mirror: GitRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    await run(write_questions(tmp_path, mirror.sha()))

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    coverage = {row[2]: row[-8:] for row in rows if row[:2] == ["keyless", "/"] and len(row) == 12 and row[3] == "1"}
    assert coverage["still"] == coverage["one-round"] == ["1.000"] * 8
    costs = {row[2]: row for row in rows if row[:2] == ["keyless", "/"] and row[-6].endswith("s")}
    assert {name: row[-3] for name, row in costs.items() if name in coverage} == {"still": "1.00", "one-round": "1.00"}
    assert all(int(costs[name][-4]) > 0 for name in coverage)
    assert costs["still"][-5] == "-"
    assert 50 < int(costs["one-round"][-5].removesuffix("%")) < 100


async def test_swe_qa_questions_are_read_with_files_and_lines(
    tmp_path: Path, mirror: GitRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweqa"
    folder.mkdir()
    repository = {"name": "pumps", "url": URL, "commit": mirror.sha(), "root": ""}
    relevant = [{"path": "pumps/prime.py", "spans": [[1, 2]]}, {"path": "pumps/gone.py", "spans": []}]
    (folder / "repos.json").write_text(json.dumps([repository]), encoding="utf-8")
    (folder / "pumps.json").write_text(json.dumps([{"query": "what is prime_pump?", "relevant": relevant}]), "utf-8")
    words = ["--mirrors", str(tmp_path / "mirrors"), "--sweqa", str(folder), "--answerers", "still"]

    await run(parse_arguments(words))

    assert "sweqa / still                   1      1.000" in capsys.readouterr().out


def test_a_line_counts_as_shown_only_with_its_number_path_and_text() -> None:
    text = "\n".join(
        [
            "Folders: pumps/prime.py pumps/valve.py",
            "[E1] pumps/prime.py lines 1-2 (found by search)",
            "1: def prime_pump(pressure):",
            "2:     return something_else",
            "[pumps/valve.py:L2-L2]     return pump.flow",
        ]
    )

    shown = list(find_shown_lines([text], FILES, lambda path: FILES[path].split("\n")))

    assert [(one.path, one.line) for one in shown] == [("pumps/prime.py", 1), ("pumps/valve.py", 2)]
    assert shown[0].tokens < shown[1].tokens


def test_only_what_stands_within_the_tokens_counts() -> None:
    question = PlacedQuestion(text="?", kind="how", places={"a.py": frozenset({1, 2}), "b.py": frozenset()})
    shown = [ShownLine(path="a.py", line=1, tokens=1_000), ShownLine(path="b.py", line=9, tokens=5_000)]

    coverage = measure_coverage(question, shown)

    assert coverage.files == (0.5, 0.5, 1.0, 1.0)
    assert coverage.lines == (0.5, 0.5, 0.5, 0.5)
