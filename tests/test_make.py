"""The Makefile and its setup script: what they run, what they never run, and what they say is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A project folder whose installed Python prints its arguments, one a line."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("scripts", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    installed = tmp_path / ".venv" / "bin" / "python"
    installed.parent.mkdir(parents=True)
    script(installed, 'for each in "$@"; do printf "%s\\n" "$each"; done')
    (tmp_path / ".venv" / ".installed").touch()
    return tmp_path


def script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def make(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "CITEBOT_"))}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )


def test_help_lists_every_target(bench: Path) -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    done = make(bench, "help")

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line.split()[1] for line in done.stdout.splitlines()) == sorted(phony.split())


def test_started_elsewhere_it_takes_nothing_from_there(bench: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    installed = elsewhere / ".venv" / "bin" / "python"
    installed.parent.mkdir(parents=True)
    script(installed, "echo hostile")
    (elsewhere / ".venv" / ".installed").touch()
    (elsewhere / ".env").write_text("GOOGLE_API_KEY=theirs\n")
    script(bench / ".venv" / "bin" / "python", 'echo "$CITEBOT_ENV_FILE $@"')

    done = make(elsewhere, "-f", str(bench / "Makefile"), "run")

    assert done.stdout.split() == ["-P", "-m", "bot", "chat"]


def test_the_files_beside_the_makefile_are_named_and_no_others(bench: Path) -> None:
    script(bench / ".venv" / "bin" / "python", 'echo "$CITEBOT_ENV_FILE|${CITEBOT_CONFIG-unset}"')

    assert make(bench, "run").stdout == "|unset\n"
    for name in (".env", "citebot.toml"):
        (bench / name).touch()
    assert make(bench, "run").stdout == f".env|{bench}/citebot.toml\n"
    assert make(bench, "run", CITEBOT_CONFIG="mine.toml").stdout == ".env|mine.toml\n"


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_question_is_never_executed(bench: Path, by: str) -> None:
    question = "$(shell touch p1) $(touch p2) `touch p3` \"; touch p4; ' $HOME $$ # --json"

    done = make(bench, "ask", f"Q={question}") if by == "argument" else make(bench, "ask", Q=question)

    assert done.stdout.splitlines() == ["-P", "-m", "bot", "ask", "--", question]
    assert list(bench.glob("p?")) == []


def test_fuzzing_takes_a_number_of_seconds_and_nothing_else(bench: Path) -> None:
    (bench / ".venv" / ".installed-dev").touch()

    done = make(bench, "fuzz", "SECONDS=$(shell touch p1) a[$(touch p2)] `touch p3`")

    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: make fuzz" in done.stderr
    assert list(bench.glob("p?")) == []
    assert make(bench, "fuzz", "SECONDS=0").returncode == 0


def put_tools(folder: Path, *tools: str, **scripts: str) -> Path:
    """Make a folder that has nothing but the given tools, for the path."""
    path = folder / "bin"
    path.mkdir()
    for tool in ("sh", *tools):
        (path / tool).symlink_to(shutil.which(tool) or "")
    for name, body in scripts.items():
        script(path / name, body)
    return path


def setup(folder: Path, *tools: str, **scripts: str) -> str:
    """Run the setup script where nothing but the given tools is on the path; return what it complains of."""
    path = put_tools(folder, *tools, **scripts)
    command = [str(path / "sh"), "scripts/setup.sh", "new", "."]
    done = subprocess.run(
        command, cwd=folder, env={"PATH": str(path)}, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_a_missing_git_is_one_line(bench: Path) -> None:
    assert setup(bench).splitlines() == [
        "citebot: git is missing; install it (on Debian: apt install git; on macOS: xcode-select --install)."
    ]


def test_a_python_without_venv_is_one_line(bench: Path) -> None:
    python = 'case "$2" in *ensurepip*) exit 1;; *print*) echo python3.12;; esac'

    assert setup(bench, "git", python3=python).splitlines() == [
        "citebot: python3 has no venv module; install it (on Debian: apt install python3.12-venv)."
    ]


UV = 'case "$1" in venv) mkdir -p new/bin;; pip) echo "Downloading numpy (16.2MiB)"; {};; esac'
SHELL_TOOLS = ("git", "mkdir", "sleep", "sed", "cat", "rm", "grep", "find", "wc", "ls")


def test_an_installation_that_fails_shows_all_that_the_installer_said(bench: Path) -> None:
    said = setup(bench, *SHELL_TOOLS, uv=UV.format('echo "no space left"; exit 1'))

    assert said.splitlines() == [
        "Installing citebot into new, once: about half a minute.",
        "Downloading numpy (16.2MiB)",
        "no space left",
        "citebot: The installation failed; the reason is above, and in new/install.log.",
    ]


@pytest.mark.parametrize("reason", ["dns error: failed to lookup"])
def test_an_index_that_cannot_be_reached_is_one_line(bench: Path, reason: str) -> None:
    said = setup(bench, *SHELL_TOOLS, uv=UV.format(f'echo "{reason}"; exit 1'))

    (_, line) = said.splitlines()
    assert line.startswith("citebot: The package index cannot be reached. ")
