"""Citebot as a process: what only the operating system can show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[3]


def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as `| head` does, once it has seen enough
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bot", "--help"],
            cwd=ROOT,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
    finally:
        os.close(writer)

    assert done.stderr == ""


@pytest.mark.exhaustive
def test_a_folder_without_a_repository_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot", "status", "--repo", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("citebot: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["citebot", "se"], ["search", "serve"]),
        (["citebot", "ask", "--repo", "sh"], ["shop"]),
    ],
)
@pytest.mark.exhaustive
def test_the_documented_line_makes_bash_complete(words: list[str], offered: list[str], tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('[[repositories]]\nname = "shop"\npath = "nowhere"\n', encoding="utf-8")
    (line,) = re.findall(r"\| bash \|[^|]+\| `(.+)` \|", (ROOT / "docs/cli.md").read_text(encoding="utf-8"))
    script = f"""
        compopt() {{ :; }}  # what bash has only while it completes
        {line}
        COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
        _citebot_completion citebot
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "CITEBOT_CONFIG": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_SECONDS,
    )

    assert (done.stdout.split(), done.stderr) == (offered, "")
