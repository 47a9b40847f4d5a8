"""The benchmark of answers without a model, from a file of questions to its table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.keyless import run
from tests.fakes.repositories import GitRepo

pytestmark = pytest.mark.exhaustive

URL = "https://host.example/owner/pumps"


@pytest.fixture
def mirror(tmp_path: Path) -> GitRepo:
    """A mirror with one commit."""
    repository = GitRepo(tmp_path / "mirrors" / "owner+pumps" / "repo")
    repository.write("pumps.py", "def prime_pump():\n    return 1\n\n\ndef start():\n    return prime_pump()\n")
    repository.commit("Add the pump")
    return repository


def arrange(tmp_path: Path, commit: str, *, url: str = URL) -> argparse.Namespace:
    """Write two questions and return the command line that asks them."""
    record = {
        "name": "pumps",
        "url": url,
        "commit": commit,
        "questions": [
            {"kind": "where", "question": "where is prime_pump?", "truth": {"places": ["pumps.py:1-2"]}},
            {"kind": "callers", "question": "who calls prime_pump?", "truth": {"names": ["start"], "count": 1}},
        ],
    }
    questions = tmp_path / "questions"
    questions.mkdir()
    (questions / "pumps.json").write_text(json.dumps(record), encoding="utf-8")
    return argparse.Namespace(
        mirrors=tmp_path / "mirrors",
        questions=questions,
        held_out=False,
        data=tmp_path / "data",
        kind=None,
        repo=None,
        each=False,
        show=True,
    )


async def test_every_question_is_asked_judged_and_counted_by_kind(
    tmp_path: Path, mirror: GitRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    await run(arrange(tmp_path, mirror.sha()))

    printed = capsys.readouterr().out
    assert "'where is prime_pump?'" in printed
    assert "[1] pumps.py:1-2" in printed
    rows = {line.split()[0]: line.split()[1:4] for line in printed.splitlines()[-3:]}
    assert rows == {"callers": ["1", "2/2", "100"], "where": ["1", "2/2", "100"], "all": ["2", "4/4", "100"]}


async def test_the_pinned_commit_is_asked_and_not_a_newer_one(
    tmp_path: Path, mirror: GitRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = mirror.sha()
    mirror.write("pumps.py", "def start():\n    return 1\n")
    mirror.commit("Take the pump out")

    await run(arrange(tmp_path, pinned))

    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["all", "2", "4/4"]
