"""Citebot as a process: what only the operating system can show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIMIT = 30


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
            timeout=LIMIT,
        )
    finally:
        os.close(writer)

    assert done.stderr == ""


def test_a_folder_without_a_repository_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot", "status", "--repo", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("citebot: ")
    assert done.stderr.count("\n") == 1
