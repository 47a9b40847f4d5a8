"""Every command that a document shows is run here, or is listed with the reason why not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents import Shown, shown_commands
from tests.fakes.citebot import Citebot, converse

pytestmark = pytest.mark.exhaustive

# What no test runs: the beginning of the command, and why.
NOT_RUN = {
    "make ": "it runs these tests, or what they run: tests/test_documents.py holds that the target is there",
    "citebot goal ": "it needs a language model and a sandbox: test_goal.py has both",
    "citebot web": "it runs until it is ended: test_local_page.py starts and ends it",
    "citebot demo": "it runs until it is ended: test_demo.py starts and ends it",
    "claude ": "it needs Claude Code",
    "citebot serve": "it runs until it is ended: test_service.py starts and ends it",
    "citebot mcp": "a client starts it: tests/bot/surfaces/test_mcp_stdio.py does",
    "citebot migrate ": "it needs Postgres: tests/bot/cli/test_migrate.py runs it",
    "curl ": "it asks a server: tests/bot/surfaces/api/ does",
    "citebot doctor --live ": "it writes in Slack or Discord: tests/bot/cli/test_doctor.py has them",
    "docker ": "it needs Docker and the network: test_deployment.py reads the Dockerfile",
    "POSTGRES_PASSWORD=": "it needs Docker and the network: tests/bot/serving/test_compose.py reads the file",
    "BASE_IMAGE=": "it asks Docker",
    "python3 -m venv ": "it makes the environment that the next command installs into",
    "python3.12 -m venv ": "as above",
    ".venv/bin/pip ": "it installs from a package index",
    "uv ": "as above",
    "pipx ": "as above",
    "/opt/citebot/bin/pip ": "as above",
    "useradd ": "it changes the machine",
    "install ": "it changes the machine: test_deployment.py reads the service",
    "systemctl ": "it changes the machine",
    "git config --system ": "it changes the machine",
    "citebot questions ": "only named accounts may: cli/test_questions.py runs it",
    "citebot gaps ": "only named accounts may: cli/test_gaps.py runs it",
    "citebot replay ": "only named accounts may: cli/test_replay.py runs it",
    "citebot eval ": "it needs a file of questions: cli/test_evaluation.py has them",
}
COMMANDS = [each for each in shown_commands() if each.document != "docs/tutorial.md"]  # which test_tutorial.py runs
RUN = [each for each in COMMANDS if not str(each).startswith(tuple(NOT_RUN))]


@pytest.fixture
def stand_ins(
    shop: Path, tmp_path: Path, citebot: Citebot, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """What stands for the placeholders of the documents; standard input holds one question."""
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "query": "parse a date"}\n', encoding="utf-8")
    (tmp_path / "questions").write_text("who calls parse_date?\n", encoding="utf-8")
    assert converse(citebot, "who calls parse_date?").code == 0  # so that there is a conversation to save
    assert citebot("backup", str(tmp_path / "saved")).code == 0
    shutil.copytree(shop, tmp_path / "website")
    named = {"shop": shop, "website": tmp_path / "website"}
    tables = (f'[[repositories]]\nname = "{name}"\npath = "{path}"\n' for name, path in named.items())
    (tmp_path / "citebot.toml").write_text("".join(tables), encoding="utf-8")
    monkeypatch.setenv("CITEBOT_CONFIG", str(tmp_path))
    with (tmp_path / "questions").open(encoding="utf-8") as questions:
        monkeypatch.setattr("sys.stdin", questions)
        yield {"PATH": str(shop), "FILE": str(tmp_path / "saved")}


@pytest.mark.parametrize("shown", RUN, ids=str)
def test_a_documented_command_works(shown: Shown, citebot: Citebot, stand_ins: dict[str, str]) -> None:
    program, *arguments = (stand_ins.get(word, word) for word in shown.words)
    if arguments[0] == "backup":
        arguments.append("--force")  # the stand-in for FILE is there already
    assert program == "citebot", f"{shown.document} shows a command that nothing runs"

    done = citebot(*arguments)

    assert done.code == (1 if arguments[0] == "feedback" else 0), done  # nobody has rated anything
    assert "Traceback" not in done.err


def test_whatever_is_not_run_is_shown_somewhere() -> None:
    shown = [str(command) for command in COMMANDS]

    assert [start for start in NOT_RUN if not any(each.startswith(start) for each in shown)] == []
