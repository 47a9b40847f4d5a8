"""What is released and what runs where, as a person asks it of a repository with tags and deploy marks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli.main import run
from bot.repositories.deploy_marks import ConfiguredMarks
from tests.fakes.loopback.web_service import serving_json
from tests.fakes.repositories import GitRepo

Ask = Callable[..., str]


@pytest.fixture
def till(tmp_path: Path) -> GitRepo:
    """Two releases and a commit after them; production is at the first one, staging at the second."""
    till = GitRepo(tmp_path / "till")
    till.write("src/pay.py", "def refund(x):\n    return -x\n")
    till.commit("Add refund")
    till.git("tag", "v1.0")
    till.git("branch", "deploy/prod")
    till.write("src/pay.py", "def refund(x):\n    return -abs(x)\n")
    till.commit("Fix refund of negative amounts")
    till.git("tag", "v1.1-rc1")
    till.git("tag", "deployed-7")
    till.git("tag", "v1.1")
    till.write("src/pay.py", "def refund(x):\n    return -abs(round(x))\n")
    till.commit("Round refunds")
    till.git("branch", "stable/1.1", "v1.1")
    till.git("checkout", "-q", "-b", "release/1.2")
    till.write("VERSION", "1.2\n")
    till.commit("Prepare 1.2")
    till.git("checkout", "-q", "main")
    return till


@pytest.fixture
def ask(till: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setenv("CITEBOT_CONFIG", str(tmp_path / "citebot.toml"))

    def ask(question: str, environments: str = 'production = "deploy/prod"\nstaging = "deployed-*"') -> str:
        table = f"[repositories.environments]\n{environments}\n"
        (tmp_path / "citebot.toml").write_text(f'[[repositories]]\npath = "{till.root}"\n{table}')
        run(["ask", question, "--repo", str(till.root)])
        return capsys.readouterr().out

    return ask


def test_each_commit_says_its_first_release_and_who_runs_it(ask: Ask, till: GitRepo) -> None:
    first, fix = till.sha("v1.0")[:8], till.sha("v1.1")[:8]

    of_commit = ask(f"which release has commit {fix}?")
    assert "Released since `v1.1`." in of_commit
    assert f"`production` runs `{first}` (since `v1.0`), by `deploy/prod`, and lacks this commit." in of_commit
    assert f"`staging` runs `{fix}` (since `v1.1`), by `deployed-*`, and has this commit." in of_commit

    is_fixed = ask("is the refund of negative amounts fixed?")
    assert "Fix refund of negative amounts" in is_fixed
    assert "Released since `v1.1`." in is_fixed

    changes = ask("when was refund changed?")
    assert "*Round refunds* (not released yet)" in changes
    assert "*Add refund* (since `v1.0`)" in changes
    assert "and lacks 2 of these 3 commits" in changes

    compared = ask("what changed since v1.1?")
    assert "Not in any release yet." in compared
    assert "On a release branch, not yet tagged: `release/1.2` (1 commit)." in compared
    assert "and lacks this commit." in compared


def test_what_runs_is_told_and_what_is_not_known_as_well(ask: Ask, till: GitRepo) -> None:
    assert "(since `v1.0`), by `deploy/prod`, and is 2 commits behind." in ask("what runs in production?")
    assert "The commit that `canary` runs is not known: " in ask("is refund in production?", 'canary = "nowhere"')
    assert ask("what runs in production?", "").startswith("*No environments of this repository are configured. ")
    # A value is asked about here, and no change.
    assert "production` runs" not in ask("is debugging in production?")
    with serving_json({"": {"commit": till.sha("v1.1")}}) as (address, _):
        said = ask("what runs in production?", f'production = "{address}/till.json?key=s3cret"')
        assert "by `127.0.0.1`, and is 1 commit behind." in said
        assert "s3cret" not in said


@pytest.mark.parametrize(
    ("answer", "status", "problem"),
    [
        ({"commit": "none"}, 200, "does not hold the id of one commit"),
        ({"was": "a" * 40, "is": "b" * 40}, 200, "does not hold the id of one commit"),
        ({"commit": "a" * 5_000}, 200, "larger than 4 KB"),
        ({}, 302, "answered with the status 302"),
    ],
)
def test_a_file_that_says_no_commit_is_explained(answer: object, status: int, problem: str) -> None:
    with serving_json({"": answer}, status) as (address, _):
        marks = asyncio.run(ConfiguredMarks({"production": address, "staging": "v*"})())

    assert problem in marks["production"].problem
    assert marks["staging"].ref == "v*"
